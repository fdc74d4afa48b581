"""Scores given tokens with llama.cpp's server, in a process of its own or over HTTP. Imports nothing but the standard library.

The server returns probabilities of generated tokens only, but those of the model before any sampling. So
each scored token is generated: one step from its prefix, with a bias that leaves the sampler no other choice.
The prefix stays in the cache from one position to the next: the whole costs one pass over the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Leaves the sampler no choice; the probability that is returned is the one before it.
BIAS = 1e6

#: More than any vocabulary has; the server cuts it down.
EVERY_TOKEN = 1 << 24


class ScoringError(Exception):
    """llama.cpp did not do what was asked."""


class Scorer:
    """Asks the server for one token after another.

    Args:
        ask: Sends a request to ``/v1/completions`` and returns the answer.
        token_ids: The text.
    """

    def __init__(self, ask: Callable[[dict[str, Any]], dict[str, Any]], token_ids: list[int]) -> None:
        self.ask, self.token_ids = ask, token_ids
        self.whole: list[int] = []

    def score(self, position: int) -> float:
        """Returns the log-probability of the token at ``position`` after all before it [nats].

        Raises:
            ScoringError: If it cannot be had.
        """
        prefix, token = self.token_ids[:position], self.token_ids[position]
        entry = self.generate(prefix, token, 1)
        if entry is None:
            # A token that ends inside a character is held back, and its probability with it. Another is
            # generated in its place, and the probabilities of all tokens are read.
            for other in [*self.whole, *dict.fromkeys(self.token_ids)]:
                entry = self.generate(prefix, other, EVERY_TOKEN)
                if entry is not None:
                    self.whole = [other]
                    return next(float(top["logprob"]) for top in entry["top_logprobs"] if top["id"] == token)
            raise ScoringError(
                "every token of the text ends inside a character, and llama.cpp gives no probabilities for it"
            )
        if entry["id"] != token:
            raise ScoringError(f"llama.cpp scored token {entry['id']} at position {position}, not {token}")
        self.whole = [token]
        return float(entry["logprob"])

    def generate(self, prefix: list[int], token: int, num_probabilities: int) -> Any:
        """Returns what the server says of the one token that it generates; None where it holds the token back.

        Raises:
            ScoringError: If it answers with an error, or read another text.
        """
        request = {
            "prompt": prefix,
            "n_predict": 1,
            "n_probs": num_probabilities,
            "cache_prompt": True,
            "samplers": ["temperature"],
            "temperature": 1.0,
            "logit_bias": [[token, BIAS]],
        }
        answer = self.ask(request)
        if "choices" not in answer:
            raise ScoringError(f"llama.cpp answered: {answer}")
        if answer["usage"]["prompt_tokens"] != len(prefix):
            raise ScoringError(f"llama.cpp read {answer['usage']['prompt_tokens']} tokens, not {len(prefix)}")
        logprobs = answer["choices"][0]["logprobs"]
        return logprobs["content"][0] if logprobs and logprobs["content"] else None
