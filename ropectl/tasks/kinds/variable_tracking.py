"""Follows assignments over several hops."""

from __future__ import annotations

import random
import string
from typing import Literal

from pydantic import Field

from ropectl.tasks.haystack import HaystackTask
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import TrialText
from ropectl.tasks.task import CONTAINED, RULER
from ropectl.tasks.words import draw_number

NAME_LETTERS, VALUE_DIGITS = 5, 5


class VariableTracking(HaystackTask):
    """A variable gets a number, a second one gets the first, and so on; which variables hold the number?"""

    name = "variable-tracking"
    title = "Chains of assignments"
    reference = RULER
    measures = "whether references are followed from one fact to the next"
    instruction = "The text below is interrupted by assignments to variables. Keep track of which variable holds which number.\n\n"
    metric = CONTAINED

    haystack: Literal["text", "filler"] = Field(
        "filler", description="what the assignments are hidden in: text (--text) or filler"
    )
    chains: int = Field(1, ge=1, le=10, description="chains of assignments; one is asked for")
    hops: int = Field(4, ge=1, le=20, description="assignments of a chain that name another variable")

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns the chains, woven into one another, each in its own order."""
        size = self.hops + 1
        names = builder.draw_different(rng, draw_variable, self.chains * size)
        numbers = builder.draw_different(rng, draw_value, self.chains)
        chains = [names[start : start + size] for start in range(0, len(names), size)]
        steps = [
            [f"\nset {name} = {source}\n" for name, source in zip(chain, [number, *chain[:-1]], strict=True)]
            for chain, number in zip(chains, numbers, strict=True)
        ]
        order = [index for index in range(self.chains) for _ in range(size)]
        rng.shuffle(order)
        waiting = [iter(chain) for chain in steps]
        question = f"\n\nWhich {size} variables hold the number {numbers[0]}, directly or through other variables?"
        prefix = f" The variables that hold {numbers[0]} are"
        facts = tuple(next(waiting[index]) for index in order)
        return TrialText(facts, question, prefix, f" {', '.join(chains[0])}.", tuple(chains[0]))


def draw_variable(rng: random.Random) -> str:
    """Returns a name of capital letters."""
    return "".join(rng.choices(string.ascii_uppercase, k=NAME_LETTERS))


def draw_value(rng: random.Random) -> str:
    """Returns the number at the start of a chain."""
    return draw_number(rng, VALUE_DIGITS)
