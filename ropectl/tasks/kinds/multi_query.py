"""Several keys asked for at once."""

from __future__ import annotations

import random
from typing import ClassVar

from pydantic import Field

from ropectl.tasks.kit import PromptKit
from ropectl.tasks.planted import NUMBER_INSTRUCTION, NumberTask, listing, note
from ropectl.tasks.puzzle import Puzzle
from ropectl.tasks.task import CONTAINED, RULER
from ropectl.tasks.words import draw_name


class MultiQuery(NumberTask):
    """Numbers are noted for several names, and those of all are asked for at once."""

    name: ClassVar[str] = "multi-query"
    title: ClassVar[str] = "Several questions at once"
    reference: ClassVar = RULER
    measures: ClassVar[str] = "whether several facts are found for one answer"
    instruction: ClassVar[str] = NUMBER_INSTRUCTION
    metric: ClassVar[str] = CONTAINED

    queries: int = Field(4, ge=2, le=50, description="names with a number each, all asked for")

    def draw(self, kit: PromptKit, rng: random.Random) -> Puzzle:
        """Returns names with their numbers, asked for in another order than they are planted in."""
        names = kit.draw_different(rng, draw_name, self.queries)
        numbers = self.draw_numbers(kit, rng, self.queries)
        facts = list(map(note, names, numbers))
        rng.shuffle(facts)
        asked = listing(names)
        question = f"\n\nWhat are the numbers of {asked}, as the text notes them?"
        return Puzzle(tuple(facts), question, f" The numbers of {asked} are", f" {listing(numbers)}.", tuple(numbers))
