"""Asks for the values of several keys at once."""

from __future__ import annotations

import random
from typing import ClassVar

from pydantic import Field

from ropectl.tasks.haystack import NUMBER_INSTRUCTION, NumberTask, listing, note
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import TrialText
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

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns names with their numbers, asked for in another order than they stand in."""
        names = builder.draw_different(rng, draw_name, self.queries)
        numbers = self.draw_numbers(builder, rng, self.queries)
        facts = list(map(note, names, numbers))
        rng.shuffle(facts)
        asked = listing(names)
        question = f"\n\nWhat are the numbers of {asked}, as the text notes them?"
        return TrialText(
            tuple(facts), question, f" The numbers of {asked} are", f" {listing(numbers)}.", tuple(numbers)
        )
