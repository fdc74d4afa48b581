"""Tasks that hide facts in a haystack: the user's own text, or filler sentences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import BodyLayout
from ropectl.tasks.task import RetrievalTask


class HaystackTask(RetrievalTask):
    """Facts are put whole between the tokens of a haystack, which is never decoded and encoded again."""

    haystack: Literal["text", "filler"] = Field(
        "text", description="what the facts are hidden in: text (--text) or filler, five sentences over and over"
    )

    def body(self, builder: PromptBuilder, facts: Sequence[list[int]], layout: BodyLayout) -> list[int]:
        """Returns the haystack with the facts in it: in their order, or the asked one in its place with the others around it."""
        asked, others = (facts[0], facts[1:]) if layout.fact_start is not None else ([], facts)
        haystack = builder.haystack(self.haystack, layout.room - len(asked), self, layout.number)
        start = layout.fact_start or 0
        before, after = hide(haystack[:start], haystack[start:], others, layout.rng)
        return before + asked + after


def listing(words: Sequence[str]) -> str:
    """Returns words as a sentence names them."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def hide(
    before: list[int], after: list[int], facts: Sequence[list[int]], rng: random.Random
) -> tuple[list[int], list[int]]:
    """Returns the haystack before and after an asked fact, with the other facts in it.

    They replace as many tokens of the haystack, so that lengths stay the same; each is put at a random place on a side
    that has room for it.
    """
    sides = (before, after)
    chosen: tuple[list[list[int]], list[list[int]]] = ([], [])
    for fact in facts:
        room = [len(side) - sum(map(len, taken)) for side, taken in zip(sides, chosen, strict=True)]
        fits = [side for side in (0, 1) if room[side] >= len(fact)]
        side = rng.choices(fits, weights=[room[side] for side in fits])[0]
        chosen[side].append(fact)
    return _scatter(before, chosen[0], rng), _scatter(after, chosen[1], rng)


def _scatter(haystack: list[int], facts: list[list[int]], rng: random.Random) -> list[int]:
    room = len(haystack) - sum(map(len, facts))
    cuts = sorted(rng.randint(0, room) for _ in facts)
    result: list[int] = []
    for start, end, fact in zip([0, *cuts], cuts, facts, strict=False):
        result += haystack[start:end] + fact
    return result + haystack[cuts[-1] if cuts else 0 : room]
