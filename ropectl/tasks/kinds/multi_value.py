"""Asks for several values of one key."""

from __future__ import annotations

import random
from typing import ClassVar

from pydantic import Field

from ropectl.tasks.haystack import NUMBER_INSTRUCTION, NumberTask, listing, note
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import TrialText
from ropectl.tasks.task import CONTAINED, RULER
from ropectl.tasks.words import draw_name


class MultiValue(NumberTask):
    """Several numbers are noted for one name at different places, and all of them are asked for."""

    name: ClassVar[str] = "multi-value"
    title: ClassVar[str] = "Several values of one key"
    reference: ClassVar = RULER
    measures: ClassVar[str] = "whether all facts about one thing are gathered, not just one"
    instruction: ClassVar[str] = NUMBER_INSTRUCTION
    metric: ClassVar[str] = CONTAINED

    values: int = Field(4, ge=2, le=50, description="numbers of the one name")

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns a name with its numbers."""
        (name,) = builder.draw_different(rng, draw_name, 1)
        numbers = self.draw_numbers(builder, rng, self.values)
        question = f"\n\nWhat are all {self.values} numbers of {name}, as the text notes them?"
        facts = tuple(note(name, number) for number in numbers)
        return TrialText(facts, question, f" The numbers of {name} are", f" {listing(numbers)}.", tuple(numbers))
