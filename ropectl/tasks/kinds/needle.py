"""Hides a needle in the user's own text."""

from __future__ import annotations

import random
from typing import ClassVar

from ropectl.tasks.haystack import NUMBER_INSTRUCTION, NumberTask, note
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import TrialText
from ropectl.tasks.task import EXACT, RULER
from ropectl.tasks.words import draw_name


class Needle(NumberTask):
    """A number is noted for a name somewhere in a text, and asked for at the end."""

    name: ClassVar[str] = "needle"
    title: ClassVar[str] = "Needle in your own text"
    reference: ClassVar = RULER
    measures: ClassVar[str] = "whether one fact is found again in ordinary text"
    instruction: ClassVar[str] = NUMBER_INSTRUCTION
    metric: ClassVar[str] = EXACT
    has_depths: ClassVar[bool] = True

    @property
    def chance(self) -> float:
        """One of all numbers of so many digits."""
        return 1 / float(9 * 10 ** (self.digits - 1))

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns a name with its number."""
        (name,) = builder.draw_different(rng, draw_name, 1)
        (number,) = self.draw_numbers(builder, rng, 1)
        question = f"\n\nWhat is the number of {name}, as the text notes it?"
        return TrialText((note(name, number),), question, f" The number of {name} is", f" {number}")
