"""Tasks that plant facts in a haystack: the user's own text, or filler sentences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ropectl.data.distractors import hide
from ropectl.tasks.kit import PromptKit
from ropectl.tasks.puzzle import Layout, PuzzleTask
from ropectl.tasks.words import draw_number

NUMBER_INSTRUCTION = (
    "The text below is interrupted by notes, each of which gives a number to a name. Remember the numbers: "
    "you will be asked for some of them at the end.\n\n"
)


class PlantedTask(PuzzleTask):
    """Facts stand whole between the tokens of a haystack, which is never decoded and encoded again."""

    haystack: Literal["text", "filler"] = Field(
        "text", description="what the facts are hidden in: text (--text) or filler, five sentences over and over"
    )

    def least_room(self, facts: Sequence[int]) -> int:
        """Returns the room of all facts; with other facts beside an asked one, so much more that they always fit."""
        others = facts[1:] if self.has_depths else ()
        # One fact's room more: wherever the asked fact stands, there is then always a side with room for the next.
        return sum(facts) + max(others, default=0)

    def body(self, kit: PromptKit, facts: Sequence[list[int]], layout: Layout) -> list[int]:
        """Returns the haystack with the facts in it: in their order, or the first at its spot and the others around it."""
        asked, others = (facts[0], facts[1:]) if layout.spot is not None else ([], facts)
        straw = kit.haystack(self.haystack, layout.room - len(asked), self, layout.number)
        spot = layout.spot or 0
        before, after = hide(straw[:spot], straw[spot:], others, layout.rng)
        return before + asked + after


class NumberTask(PlantedTask):
    """Numbers are noted for names, and asked for."""

    digits: int = Field(7, ge=4, le=12, description="digits of a number")

    def draw_numbers(self, kit: PromptKit, rng: random.Random, count: int) -> list[str]:
        """Returns so many different numbers."""
        draw = kit.once(("number", self.digits), lambda: lambda rng: draw_number(rng, self.digits))
        return kit.draw_different(rng, draw, count)


def note(name: str, number: str) -> str:
    """Returns a fact: the note that gives a number to a name."""
    return f"\nNote: the number of {name} is {number}.\n"


def listing(words: Sequence[str]) -> str:
    """Returns words as a sentence names them."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
