"""Hides one fact among others of its kind."""

from __future__ import annotations

import random
from typing import ClassVar

from pydantic import Field

from ropectl.tasks.haystack import NUMBER_INSTRUCTION, NumberTask, note
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import TrialText
from ropectl.tasks.task import EXACT, RULER
from ropectl.tasks.words import draw_name


class MultiKey(NumberTask):
    """Numbers are noted for several names, and that of one is asked for; the others distract."""

    name: ClassVar[str] = "multi-key"
    title: ClassVar[str] = "Needle among others like it"
    reference: ClassVar = RULER
    measures: ClassVar[str] = "whether a fact is told apart from others of the same form"
    instruction: ClassVar[str] = NUMBER_INSTRUCTION
    metric: ClassVar[str] = EXACT
    has_depths: ClassVar[bool] = True

    distractors: int = Field(3, ge=1, le=100, description="other names with numbers in the text")

    @property
    def chance(self) -> float:
        """One of the numbers in the text."""
        return 1 / (self.distractors + 1)

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns names with their numbers, of which the first is asked for."""
        names = builder.draw_different(rng, draw_name, self.distractors + 1)
        numbers = self.draw_numbers(builder, rng, self.distractors + 1)
        question = f"\n\nWhat is the number of {names[0]}, as the text notes it?"
        return TrialText(tuple(map(note, names, numbers)), question, f" The number of {names[0]} is", f" {numbers[0]}")
