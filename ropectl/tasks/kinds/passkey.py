"""Hides a passkey in filler text: the task of Landmark Attention (arXiv 2305.16300).

Position Interpolation (2306.15595), YaRN (2309.00071), LongLoRA (2309.12307) and LongRoPE (2402.13753) use it
unchanged: a number is hidden in filler text and asked for at the end. The needle and everything before it depend
only on ``(seed, needle position, trial)``, so that prompts with the needle at the same position share
every token up to the end of the shorter one's filler. Distractors are the exception: they are scattered over the whole
length.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from pydantic import Field

from ropectl.rope.method import Reference
from ropectl.tasks.haystack import hide
from ropectl.tasks.prompt_builder import PromptBuilder, draw_until
from ropectl.tasks.prompt_parts import BodyLayout, TrialText
from ropectl.tasks.task import EXACT, RetrievalTask

NEEDLE = "\nThe pass key{label} is {key}. Remember it. {key} is the pass key{label}.\n"
QUESTION, ANSWER_PREFIX = "\nWhat is the pass key{label}?", " The pass key{label} is"

#: Labels of the asked key (first) and of the distractors, for prompts with several keys.
LABELS = ("A", "B", "C", "D", "E", "F", "G", "H", "I", "J")
MAX_DISTRACTORS = len(LABELS) - 1

KEY_RANGE = (10_000, 99_999)  # five random digits

#: A key like any other, by which sizes in tokens are fixed.
NOMINAL_KEY = str(random.Random("ropectl-nominal-key").randint(*KEY_RANGE))

#: Tokens of the length that are kept free for a generated answer: a space, five digits, and what ends the number.
GENERATED_ROOM = 8


class Passkey(RetrievalTask):
    """A number is hidden in filler sentences and asked for at the end; the prompts are those of eval-passkey."""

    name = "passkey"
    title = "Passkey"
    reference = Reference("Landmark Attention", "2305.16300")
    measures = "whether a distance is used at all: the easiest retrieval there is"
    instruction = (
        "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
        "I will quiz you about the important information there.\n"
    )
    metric = EXACT
    has_depths = True

    distractors: int = Field(0, ge=0, le=MAX_DISTRACTORS, description="other labelled keys in the prompt")

    @property
    def chance(self) -> float:
        """The chance of one key among those in the prompt, or among all if there is only one."""
        return 1 / (self.distractors + 1) if self.distractors else 1 / (KEY_RANGE[1] - KEY_RANGE[0] + 1)

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns a key for each label, of which the first is asked for; all take as many tokens as the nominal one."""
        keys: list[str] = []
        for label in self._labels:
            keys.append(draw_until(rng, draw_key, partial(self._fits, builder, label, tuple(keys))))
        needles = tuple(map(needle, keys, self._labels))
        return TrialText(needles, *self._question, f" {keys[0]}")

    def body(self, builder: PromptBuilder, facts: Sequence[list[int]], layout: BodyLayout) -> list[int]:
        """Returns filler around the asked key's sentence, with those of the distractors in it."""
        assert layout.fact_start is not None
        before = builder.filler(layout.rng, layout.fact_start)
        after = builder.filler(layout.rng, layout.room - layout.fact_start - len(facts[0]))
        before, after = hide(before, after, facts[1:], layout.rng)
        return before + facts[0] + after

    def samples(self, builder: PromptBuilder) -> list[TrialText]:
        """Returns one trial of nominal keys: its sizes are those of all."""
        needles = tuple(needle(NOMINAL_KEY, label) for label in self._labels)
        return [TrialText(needles, *self._question, f" {NOMINAL_KEY}")]

    def generated_budget(self, builder: PromptBuilder, samples: Sequence[TrialText]) -> int:
        """Returns the room for a key and what may follow it [tokens]."""
        return GENERATED_ROOM

    def trial_rng(self, builder: PromptBuilder, length: int, position: int | None, number: int) -> random.Random:
        """Returns the generator of one trial, the same with and without distractors."""
        return builder.rng(position, number, family="ropectl-passkey")

    @property
    def _labels(self) -> list[str]:
        """The labels that tell the keys apart, the asked one first; one empty label where there is one key."""
        return [f" {label}" for label in LABELS[: self.distractors + 1]] if self.distractors else [""]

    @property
    def _question(self) -> tuple[str, str]:
        """The question, and the words that open the answer."""
        label = self._labels[0]
        return QUESTION.format(label=label), ANSWER_PREFIX.format(label=label)

    def _fits(self, builder: PromptBuilder, label: str, others: Sequence[str], key: str) -> bool:
        """Returns whether a key is new and takes as many tokens as the nominal one, in its sentence and as an answer."""
        nominal = builder.once(("nominal key", self, label), lambda: self._sizes_of(builder, label, NOMINAL_KEY))
        needle_size, answer_size = self._sizes_of(builder, label, key)
        return key not in others and needle_size == nominal[0] and nominal[1] in (None, answer_size)

    def _sizes_of(self, builder: PromptBuilder, label: str, key: str) -> tuple[int, int | None]:
        """Returns the number of tokens in a key's sentence, and in the key as the answer; None if that has no tokens of its own."""
        answer = builder.answer(*self._question, f" {key}")
        return len(builder.fragment(needle(key, label))), None if answer is None else len(answer)


def needle(key: str, label: str) -> str:
    """Returns the sentence that states a key."""
    return NEEDLE.format(key=key, label=label)


def draw_key(rng: random.Random) -> str:
    """Returns five digits, the first not zero."""
    return str(rng.randint(*KEY_RANGE))
