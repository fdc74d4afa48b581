"""The passkey task of ``eval-passkey``, as one task among others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from ropectl.data.passkey import KEY_RANGE, LABELS, NEEDLE, QUESTION, TASK, PasskeyPromptBuilder
from ropectl.data.trials import Trial
from ropectl.rope.method import Reference
from ropectl.tasks.frame import RAW
from ropectl.tasks.kit import PromptKit
from ropectl.tasks.planted import PlantedTask
from ropectl.tasks.task import EXACT, Puzzle


class Passkey(PlantedTask):
    """A number is hidden in filler sentences and asked for at the end; raw prompts are those of eval-passkey."""

    name: ClassVar[str] = "passkey"
    title: ClassVar[str] = "Passkey"
    reference: ClassVar = Reference("Landmark Attention", "2305.16300")
    measures: ClassVar[str] = "whether a distance is used at all: the easiest retrieval there is"
    instruction: ClassVar[str] = TASK
    metric: ClassVar[str] = EXACT
    has_depths: ClassVar[bool] = True

    haystack: Literal["filler"] = Field("filler", description="the published filler sentences")
    distractors: int = Field(0, ge=0, le=len(LABELS) - 1, description="other labelled keys in the prompt")

    @property
    def chance(self) -> float:
        """One of all keys, or one of those that are planted."""
        return 1 / (self.distractors + 1) if self.distractors else 1 / (KEY_RANGE[1] - KEY_RANGE[0] + 1)

    def draw(self, kit: PromptKit, rng: random.Random) -> Puzzle:
        """Returns the keys under their labels, of which the first is asked for."""
        keys = kit.draw_different(rng, draw_key, self.distractors + 1)
        labels = [f" {label}" for label in LABELS[: len(keys)]] if self.distractors else [""]
        question, mark, opening = QUESTION.format(label=labels[0]).partition("?")
        facts = tuple(NEEDLE.format(key=key, label=label) for key, label in zip(keys, labels, strict=True))
        return Puzzle(facts, question + mark, opening, f" {keys[0]}")

    def build(self, kit: PromptKit, length: int, depth: float | None, trial: int) -> Trial:
        """Returns one trial; a raw one is that of ``eval-passkey`` at the same seed."""
        if kit.frame is not RAW:
            return super().build(kit, length, depth, trial)
        self.check_length(kit, length)
        assert depth is not None
        prompt = self._builder(kit).build(length, depth, trial)
        return Trial(prompt.input_ids, prompt.answer_start)

    def min_length(self, kit: PromptKit) -> int:
        """Returns the shortest prompt that can be built, answer included [tokens]."""
        return self._builder(kit).min_length if kit.frame is RAW else super().min_length(kit)

    def position(self, kit: PromptKit, length: int, depth: float) -> int:
        """Returns where the asked key's sentence begins."""
        if kit.frame is not RAW:
            return super().position(kit, length, depth)
        return self._builder(kit).needle_position(length, depth)

    def distinct_depths(self, kit: PromptKit, length: int, depths: Sequence[float]) -> list[float]:
        """Returns the depths that are different positions."""
        if kit.frame is not RAW:
            return super().distinct_depths(kit, length, depths)
        return self._builder(kit).distinct_depths(length, depths)

    def _builder(self, kit: PromptKit) -> PasskeyPromptBuilder:
        def make() -> PasskeyPromptBuilder:
            return PasskeyPromptBuilder(kit.tokenizer, kit.bos_token_id, kit.seed, self.distractors)

        return kit.once(("passkey", self.distractors), make)


def draw_key(rng: random.Random) -> str:
    """Returns a key of five digits."""
    return str(rng.randint(*KEY_RANGE))
