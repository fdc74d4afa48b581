"""Other needles put in the place of filler, so that lengths stay as they are."""

from __future__ import annotations

import random
from collections.abc import Sequence


def hide(
    before: list[int], after: list[int], needles: Sequence[list[int]], rng: random.Random
) -> tuple[list[int], list[int]]:
    """Returns the filler of both sides with whole needles in it, each on a side that has room, where chance puts it."""
    sides = (before, after)
    chosen: tuple[list[list[int]], list[list[int]]] = ([], [])
    for needle in needles:
        room = [len(filler) - sum(map(len, taken)) for filler, taken in zip(sides, chosen, strict=True)]
        fits = [side for side in (0, 1) if room[side] >= len(needle)]
        side = rng.choices(fits, weights=[room[side] for side in fits])[0]
        chosen[side].append(needle)
    return _scatter(before, chosen[0], rng), _scatter(after, chosen[1], rng)


def _scatter(filler: list[int], needles: list[list[int]], rng: random.Random) -> list[int]:
    kept = len(filler) - sum(map(len, needles))
    cuts = sorted(rng.randint(0, kept) for _ in needles)
    result: list[int] = []
    for start, end, needle in zip([0, *cuts], cuts, needles, strict=False):
        result += filler[start:end] + needle
    return result + filler[cuts[-1] if cuts else 0 : kept]
