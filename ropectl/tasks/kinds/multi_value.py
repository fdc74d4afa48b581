"""Several values of one key."""

from __future__ import annotations

import random
from typing import ClassVar

from pydantic import Field

from ropectl.tasks.kit import PromptKit
from ropectl.tasks.planted import NUMBER_INSTRUCTION, NumberTask, listing, note
from ropectl.tasks.puzzle import Puzzle
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

    def draw(self, kit: PromptKit, rng: random.Random) -> Puzzle:
        """Returns a name with its numbers."""
        (name,) = kit.draw_different(rng, draw_name, 1)
        numbers = self.draw_numbers(kit, rng, self.values)
        question = f"\n\nWhat are all {self.values} numbers of {name}, as the text notes them?"
        facts = tuple(note(name, number) for number in numbers)
        return Puzzle(facts, question, f" The numbers of {name} are", f" {listing(numbers)}.", tuple(numbers))
