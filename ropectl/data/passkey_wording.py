"""The words of the passkey task, and their tokens: every fragment is tokenized once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from ropectl.data.chat import ChatFrame
from ropectl.data.tokens import encode_fragment
from ropectl.errors import ConfigError

TASK = (
    "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
    "I will quiz you about the important information there.\n"
)
FILLER = (
    "The grass is green.",
    "The sky is blue.",
    "The sun is yellow.",
    "Here we go.",
    "There and back again.",
)
NEEDLE = "\nThe pass key{label} is {key}. Remember it. {key} is the pass key{label}.\n"
ASK, ANSWER_PREFIX = "\nWhat is the pass key{label}?", "The pass key{label} is"
QUESTION = f"{ASK} {ANSWER_PREFIX}"

#: Labels of the target (first) and of the distractors, for prompts with several keys.
LABELS = ("A", "B", "C", "D", "E", "F", "G", "H", "I", "J")
MAX_DISTRACTORS = len(LABELS) - 1

KEY_RANGE = (10_000, 99_999)  # five random digits

#: A key like any other, by which lengths in tokens are fixed.
NOMINAL_KEY = str(random.Random("ropectl-nominal-key").randint(*KEY_RANGE))

FillerStream = Callable[[random.Random, int], list[int]]


class PasskeyWording:
    """The fragments of a prompt, in the tokens of one tokenizer.

    Args:
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: The first token; None for none. A chat template decides about that itself.
        num_distractors: Other labelled keys.
        chat: What stands around the user's turn; None for plain text.

    Attributes:
        chat: As given.
        labels: What tells the keys apart, the asked one first; one empty label where there is one key.
        head: Everything up to the filler.
        question: Everything behind the filler, up to the answer.
    """

    def __init__(self, tokenizer: Any, bos_token_id: int | None, num_distractors: int, chat: ChatFrame | None) -> None:
        self._tokenizer = tokenizer
        self.chat = chat
        self.labels = [f" {label}" for label in LABELS[: num_distractors + 1]] if num_distractors else [""]
        if chat is None:
            self.head = ([] if bos_token_id is None else [bos_token_id]) + self._encode(TASK)
        else:
            self.head = list(tokenizer.encode(chat.before + TASK, add_special_tokens=False, verbose=False))
        question = f"{ASK}{chat.after}{ANSWER_PREFIX}" if chat else QUESTION
        self._question_text = question.replace("{label}", self.labels[0])  # a template may have braces of its own
        self.question = self._encode(self._question_text)

    @cached_property
    def has_answer_tokens(self) -> bool:
        """Whether the key behind the question leaves the question's own tokens as they are.

        Where a tokenizer merges the end of the question with the key, or keeps spaces at the end of words, the
        answer has no tokens of its own behind the prompt: a model may write it in several ways.
        """
        return self.answer_length(NOMINAL_KEY) is not None

    @cached_property
    def needle_lengths(self) -> list[int]:
        """Tokens of the needle under each label."""
        return [len(self.needle(NOMINAL_KEY, label)) for label in self.labels]

    def needle(self, key: str, label: str) -> list[int]:
        """Returns the tokens of the sentence that says a key."""
        return self._encode(NEEDLE.format(key=key, label=label))

    def answer(self, key: str) -> list[int]:
        """Returns the tokens of the answer: what the question gains when the key is written behind it.

        Raises:
            ConfigError: If it does not only gain.
        """
        tokens = self._split_answer(key)
        if tokens is None:
            raise ConfigError(
                "This tokenizer merges the end of the question with the key: no exact answer tokens exist."
            )
        return tokens

    def answer_length(self, key: str) -> int | None:
        """Returns how many tokens the answer has; None where it has none of its own."""
        tokens = self._split_answer(key)
        return None if tokens is None else len(tokens)

    def filler(self, rng: random.Random, count: int) -> list[int]:
        """Returns the five published sentences in their order, over and over, from a random one on: ``count`` tokens."""
        start = rng.randrange(len(FILLER))
        first, following = self._sentences
        tokens = list(first[start])
        sentence = start
        while len(tokens) < count:
            sentence = (sentence + 1) % len(FILLER)
            tokens += following[sentence]
        return list(islice(tokens, count))

    def text(self, tokens: Sequence[int]) -> str:
        """Returns the text of some tokens."""
        text: str = self._tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
        return text

    def _split_answer(self, key: str) -> list[int] | None:
        tokens = self._encode(f"{self._question_text} {key}")
        return tokens[len(self.question) :] if tokens[: len(self.question)] == self.question else None

    @cached_property
    def _sentences(self) -> tuple[list[list[int]], list[list[int]]]:
        """Each filler sentence as the first of a line, and as one that follows another."""
        return [self._encode(s) for s in FILLER], [self._encode(f" {s}") for s in FILLER]

    def _encode(self, text: str) -> list[int]:
        return encode_fragment(self._tokenizer, text)
