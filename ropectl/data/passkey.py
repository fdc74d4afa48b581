"""Passkey prompts, built in token space to the exact length asked for.

The task of Landmark Attention (arXiv 2305.16300), used unchanged by Position Interpolation
(2306.15595), YaRN (2309.00071), LongLoRA (2309.12307) and LongRoPE (2402.13753): a number is hidden
in filler text and asked for at the end.

A prompt is a splice of token fragments, each tokenized once::

    [BOS] task | filler ... | needle | filler ... | question | answer

and is never decoded and re-encoded, so its length, the position of the needle and the tokens of the
answer are exact. Everything up to the needle and the needle itself depend on ``(seed, needle
position, trial)`` alone: whatever else is run, a trial is the same prompt, and two prompts with the
needle at the same position share every token up to the end of the shorter one's filler. Distractors are
the exception: they are scattered over the whole length, so prompts of different lengths differ there.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

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
QUESTION = "\nWhat is the pass key{label}? The pass key{label} is"

#: Labels of the target (first) and of the distractors, for prompts with several keys.
LABELS = ("A", "B", "C", "D", "E", "F", "G", "H", "I", "J")
MAX_DISTRACTORS = len(LABELS) - 1

KEY_RANGE = (10_000, 99_999)  # five random digits

EVALUATION_NAMESPACE, TRAINING_NAMESPACE = "ropectl-passkey", "ropectl-passkey-training"

FillerStream = Callable[[random.Random, int], list[int]]


@dataclass(frozen=True)
class PasskeyPrompt:
    """One trial.

    Attributes:
        input_ids: All tokens, the answer included; exactly as many as asked for.
        answer_start: Index of the first answer token in ``input_ids``.
        needle_position: Index of the needle's first token.
        key: The number to retrieve.
        distractor_keys: The other numbers in the haystack.
    """

    input_ids: list[int]
    answer_start: int
    needle_position: int
    key: str
    distractor_keys: tuple[str, ...] = ()


class PasskeyPromptBuilder:
    """Builds passkey prompts for one tokenizer; every fragment is tokenized once.

    Args:
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first in every prompt; None for none.
        seed: Chooses keys and filler, together with needle position and trial.
        num_distractors: Other labelled keys in the haystack, in ``[0, 9]``. With any, the asked
            key is labelled too, and a model that returns another key is wrong.
        filler: Replaces the published filler: ``filler(rng, n)`` returns ``n`` tokens.
        namespace: Seeds under another namespace are other seeds: what is trained on draws its keys and
            filler apart from what is measured, whatever the seeds.

    Raises:
        ConfigError: If ``num_distractors`` is out of range.
    """

    def __init__(
        self,
        tokenizer: Any,
        bos_token_id: int | None = None,
        seed: int = 0,
        num_distractors: int = 0,
        filler: FillerStream | None = None,
        namespace: str = EVALUATION_NAMESPACE,
    ) -> None:
        if not 0 <= num_distractors <= MAX_DISTRACTORS:
            raise ConfigError(
                f"distractors = {num_distractors} is not possible: allowed are 0 to {MAX_DISTRACTORS}.",
                "Type for example: --distractors 3",
            )
        self._tokenizer = tokenizer
        self._head = [bos_token_id] if bos_token_id is not None else []
        self._head += self._encode(TASK)
        self._seed = f"{namespace}:{seed}"
        self._labels = [f" {label}" for label in LABELS[: num_distractors + 1]] if num_distractors else [""]
        self._question = self._encode(QUESTION.format(label=self._labels[0]))
        self._filler = filler or self._published_filler

    @property
    def min_length(self) -> int:
        """The shortest prompt that can be built: everything but filler [tokens]."""
        others = self._needle_lengths[1:]
        # One needle's room more than the distractors take: wherever the asked needle stands, there is
        # then always a side with room for the next one.
        room = sum(others) + max(others) if others else 0
        return len(self._head) + self._tail_length + room

    def needle_position(self, length: int, depth: float) -> int:
        """Returns where the needle starts in a prompt of ``length`` tokens.

        Depth is measured over the whole prompt and then moved inside it: 0 is directly behind the
        task, 1 directly before the question. So depth 1/2 of 2048 and depth 1/4 of 4096 tokens are
        the same position and the same trial.
        """
        return max(len(self._head), min(round(depth * length), length - self._tail_length))

    def distinct_depths(self, length: int, depths: Sequence[float]) -> list[float]:
        """Returns the depths that are different positions in a prompt of ``length`` tokens.

        In a short prompt several depths are moved to one position, and so are the same trials: counted
        twice they would only pretend to more evidence.
        """
        positions: dict[int, float] = {}
        for depth in depths:
            positions.setdefault(self.needle_position(length, depth), depth)
        return list(positions.values())

    def build(self, length: int, depth: float, trial: int) -> PasskeyPrompt:
        """Returns the prompt of one trial with exactly ``length`` tokens, answer included.

        Args:
            length: Tokens of prompt and answer together.
            depth: Relative position of the needle, in ``[0, 1]``.
            trial: Index of the trial; another trial has another key and another filler.

        Raises:
            ConfigError: If ``length`` leaves no room for task, needle, question and answer, or
                ``depth`` is outside ``[0, 1]``.
        """
        if not 0 <= depth <= 1:
            raise ConfigError(f"depth = {depth} is outside [0, 1].", "Type for example: --depths 5")
        if length < self.min_length:
            raise ConfigError(
                f"length = {length} tokens is too short for a passkey prompt: task, needle, question and "
                f"answer take {self.min_length} tokens with this tokenizer.",
                f"Use lengths of at least {self.min_length}.",
            )
        position = self.needle_position(length, depth)
        rng = random.Random(f"{self._seed}:{position}:{trial}")
        keys = self._draw_keys(rng)
        needle = self._needle(keys[0], self._labels[0])
        answer = self._answer(keys[0])

        before = self._filler(rng, position - len(self._head))
        after = self._filler(rng, length - position - len(needle) - len(self._question) - len(answer))
        if len(keys) > 1:
            before, after = self._hide_distractors(before, after, keys[1:], rng)
        input_ids = self._head + before + needle + after + self._question + answer
        return PasskeyPrompt(input_ids, length - len(answer), position, keys[0], tuple(keys[1:]))

    def fingerprint(self, lengths: Sequence[int], depths: Sequence[float], trials: int) -> str:
        """Returns a hash over all prompts of a grid: equal hashes mean the same trials.

        Raises:
            ConfigError: If a length is too short for a prompt.
        """
        digest = hashlib.sha256()
        for length in lengths:
            for depth in self.distinct_depths(length, depths):
                for trial in range(trials):
                    digest.update(json.dumps(self.build(length, depth, trial).input_ids).encode())
        return digest.hexdigest()

    def _hide_distractors(
        self, before: list[int], after: list[int], keys: list[str], rng: random.Random
    ) -> tuple[list[int], list[int]]:
        """Lets the other needles take the place of filler on both sides; lengths stay as they are."""
        sides = (before, after)
        chosen: tuple[list[list[int]], list[list[int]]] = ([], [])
        for key, label in zip(keys, self._labels[1:], strict=True):
            needle = self._needle(key, label)
            room = [len(filler) - sum(map(len, needles)) for filler, needles in zip(sides, chosen, strict=True)]
            fits = [side for side in (0, 1) if room[side] >= len(needle)]
            side = rng.choices(fits, weights=[room[side] for side in fits])[0]
            chosen[side].append(needle)
        return self._scatter(before, chosen[0], rng), self._scatter(after, chosen[1], rng)

    @staticmethod
    def _scatter(filler: list[int], needles: list[list[int]], rng: random.Random) -> list[int]:
        kept = len(filler) - sum(map(len, needles))
        cuts = sorted(rng.randint(0, kept) for _ in needles)
        result: list[int] = []
        for start, end, needle in zip([0, *cuts], cuts, needles, strict=False):
            result += filler[start:end] + needle
        return result + filler[cuts[-1] if cuts else 0 : kept]

    def _draw_keys(self, rng: random.Random) -> list[str]:
        """Draws a key for each label; they differ, and take as many tokens as the nominal one, so that lengths are exact."""
        keys: list[str] = []
        for label, needle_length in zip(self._labels, self._needle_lengths, strict=True):
            while True:
                key = str(rng.randint(*KEY_RANGE))
                lengths = len(self._needle(key, label)), len(self._answer(key))
                if key not in keys and lengths == (needle_length, self._answer_length):
                    break
            keys.append(key)
        return keys

    @property
    def _tail_length(self) -> int:
        return self._needle_lengths[0] + len(self._question) + self._answer_length

    @cached_property
    def _nominal_key(self) -> str:
        return str(random.Random("ropectl-nominal-key").randint(*KEY_RANGE))

    @cached_property
    def _needle_lengths(self) -> list[int]:
        """Tokens of the needle under each label, with the nominal key."""
        return [len(self._needle(self._nominal_key, label)) for label in self._labels]

    @cached_property
    def _answer_length(self) -> int:
        return len(self._answer(self._nominal_key))

    def _needle(self, key: str, label: str) -> list[int]:
        return self._encode(NEEDLE.format(key=key, label=label))

    def _answer(self, key: str) -> list[int]:
        """Tokens of the answer: what the question gains when the key is written behind it."""
        question = QUESTION.format(label=self._labels[0])
        tokens = self._encode(f"{question} {key}")
        if tokens[: len(self._question)] != self._question:
            raise ConfigError(
                "This tokenizer merges the end of the question with the key: no exact answer tokens exist."
            )
        return tokens[len(self._question) :]

    def _published_filler(self, rng: random.Random, count: int) -> list[int]:
        """The five published sentences in their order, over and over, from a random one on."""
        start = rng.randrange(len(FILLER))
        first, following = self._sentences
        tokens = list(first[start])
        sentence = start
        while len(tokens) < count:
            sentence = (sentence + 1) % len(FILLER)
            tokens += following[sentence]
        return list(islice(tokens, count))

    @cached_property
    def _sentences(self) -> tuple[list[list[int]], list[list[int]]]:
        """Each filler sentence as the first of a line, and as one that follows another."""
        return [self._encode(s) for s in FILLER], [self._encode(f" {s}") for s in FILLER]

    def _encode(self, text: str) -> list[int]:
        return encode_fragment(self._tokenizer, text)
