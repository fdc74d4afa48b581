"""Tasks that plant facts in a haystack: the user's own text, or filler sentences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ropectl.tasks.kit import PromptKit
from ropectl.tasks.task import Layout, RetrievalTask
from ropectl.tasks.words import draw_number

NUMBER_INSTRUCTION = (
    "The text below is interrupted by notes, each of which gives a number to a name. Remember the numbers: "
    "you will be asked for some of them at the end.\n\n"
)


class PlantedTask(RetrievalTask):
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
        straw = kit.haystack(self.haystack, layout.room - sum(map(len, facts)), self, layout.trial)
        if layout.spot is None:
            return _scatter(straw, facts, layout.rng)
        asked, others = facts[0], facts[1:]
        room = [layout.spot, layout.room - layout.spot - len(asked)]
        sides: tuple[list[list[int]], list[list[int]]] = ([], [])
        for fact in others:
            fits = [side for side in (0, 1) if room[side] >= len(fact)]
            side = layout.rng.choices(fits, weights=[room[side] for side in fits])[0]
            sides[side].append(fact)
            room[side] -= len(fact)
        before = _scatter(straw[: room[0]], sides[0], layout.rng)
        return before + asked + _scatter(straw[room[0] :], sides[1], layout.rng)


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


def _scatter(straw: list[int], facts: Sequence[list[int]], rng: random.Random) -> list[int]:
    """The facts in their order at random places of the haystack."""
    cuts = sorted(rng.randint(0, len(straw)) for _ in facts)
    result: list[int] = []
    for start, end, fact in zip([0, *cuts], cuts, facts, strict=False):
        result += straw[start:end] + fact
    return result + straw[cuts[-1] if cuts else 0 :]
