"""Asks llama.cpp for the log-probability of every token of a text given the tokens before it.

Run by the python of an environment that holds ``xllamacpp`` (prebuilt for CPUs); imports nothing else:

    python llamacpp_logprobs.py MODEL.gguf IDS.json > LOGPROBS.json

IDS.json is ``{"token_ids": [...], "positions": [...]}``; without ``positions`` every token but the first is
scored. LOGPROBS.json is ``{"runtime", "version", "positions", "logprobs"}``: ``logprobs[k]`` [nats] belongs
to ``token_ids[positions[k]]`` given all tokens before it.

The server returns probabilities of generated tokens only, but those of the model before any sampling. So
each scored token is generated: one step from its prefix, with a bias that leaves the sampler no other choice.
The prefix stays in the cache from one position to the next: the whole costs one pass over the text.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import xllamacpp

#: Leaves the sampler no choice; the probability that is returned is the one before it.
BIAS = 1e6

#: More than any vocabulary has; the server cuts it down.
EVERY_TOKEN = 1 << 24

SCALING = {
    "none": "LLAMA_ROPE_SCALING_TYPE_NONE",
    "linear": "LLAMA_ROPE_SCALING_TYPE_LINEAR",
    "yarn": "LLAMA_ROPE_SCALING_TYPE_YARN",
    "longrope": "LLAMA_ROPE_SCALING_TYPE_LONGROPE",
}


def parse_arguments() -> argparse.Namespace:
    """The rotary options have the names and meanings of llama.cpp's own; without them the file decides."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="GGUF file")
    parser.add_argument("ids", type=Path, help="JSON file with token_ids and, optionally, positions")
    parser.add_argument("--context", type=int, help="context to allocate [tokens]; default: what the text needs")
    parser.add_argument("--threads", type=int, default=1, help="more are faster only where the cores are idle")
    parser.add_argument("--rope-scaling", choices=SCALING)
    parser.add_argument("--rope-scale", type=float, help="factor s; positions are divided by it")
    parser.add_argument("--rope-freq-base", type=float)
    parser.add_argument("--yarn-orig-ctx", type=int)
    parser.add_argument("--yarn-ext-factor", type=float)
    parser.add_argument("--yarn-attn-factor", type=float)
    parser.add_argument("--yarn-beta-fast", type=float)
    parser.add_argument("--yarn-beta-slow", type=float)
    return parser.parse_args()


def common_params(arguments: argparse.Namespace, num_tokens: int) -> Any:
    """Returns the settings of a server that computes as exactly as the file's weights allow."""
    params = xllamacpp.CommonParams()
    params.model.path = str(arguments.model)
    params.n_ctx = arguments.context or -(-(num_tokens + 1) // 256) * 256
    params.n_parallel = 1
    params.cpuparams.n_threads = arguments.threads
    params.cpuparams.poll = 0  # threads that wait do not spin: others may need the cores
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.fit_params = params.warmup = False
    params.verbosity = 1  # errors: why a file does not load
    if arguments.rope_scaling:
        params.rope_scaling_type = getattr(xllamacpp.llama_rope_scaling_type, SCALING[arguments.rope_scaling])
    if arguments.rope_scale:
        params.rope_freq_scale = 1.0 / arguments.rope_scale
    for name in (
        *("rope_freq_base", "yarn_orig_ctx", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow"),
    ):
        if getattr(arguments, name) is not None:
            setattr(params, name, getattr(arguments, name))
    return params


class Scorer:
    """Asks the server for one token after another."""

    def __init__(self, server: Any, token_ids: list[int]) -> None:
        self.server, self.token_ids = server, token_ids
        self.whole: list[int] = []

    def score(self, position: int) -> float:
        """Returns the log-probability of the token at ``position`` after all before it [nats]."""
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
            raise SystemExit(
                "Every token of the text ends inside a character: llama.cpp gives no probabilities for it."
            )
        if entry["id"] != token:
            raise SystemExit(f"llama.cpp scored token {entry['id']} at position {position}, not {token}.")
        self.whole = [token]
        return float(entry["logprob"])

    def generate(self, prefix: list[int], token: int, num_probabilities: int) -> Any:
        """Returns what the server says of the one token that it generates; None where it holds the token back."""
        request = {
            "prompt": prefix,
            "n_predict": 1,
            "n_probs": num_probabilities,
            "cache_prompt": True,
            "samplers": ["temperature"],
            "temperature": 1.0,
            "logit_bias": [[token, BIAS]],
        }
        answer = self.server.handle_completions(request)
        if "choices" not in answer:
            raise SystemExit(f"llama.cpp answered: {answer}")
        if answer["usage"]["prompt_tokens"] != len(prefix):
            raise SystemExit(f"llama.cpp read {answer['usage']['prompt_tokens']} tokens, not {len(prefix)}.")
        logprobs = answer["choices"][0]["logprobs"]
        return logprobs["content"][0] if logprobs and logprobs["content"] else None


def main() -> None:
    arguments = parse_arguments()
    given = json.loads(arguments.ids.read_text())
    token_ids = given["token_ids"]
    positions = given.get("positions") or list(range(1, len(token_ids)))
    if not all(0 < position < len(token_ids) for position in positions):
        raise SystemExit(f"Positions are from 1 to {len(token_ids) - 1}: a token is scored after at least one other.")
    scorer = Scorer(xllamacpp.Server(common_params(arguments, len(token_ids))), token_ids)
    scored = {position: scorer.score(position) for position in sorted(positions)}
    result = {
        "runtime": "llama.cpp",
        "version": f"xllamacpp {xllamacpp.__version__}",
        "positions": positions,
        "logprobs": [scored[position] for position in positions],
    }
    json.dump(result, sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
