"""Position policies: how the tokens of a training sequence are numbered."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PositionPolicy:
    """A way to number the tokens of a training sequence.

    Attributes:
        name: Its name on the command line.
        skips: Whether positions jump inside one sequence. Such a policy needs a target length, and a
            mask of ones: without one, transformers reads a jump as the start of another sequence.
        draw: ``draw(rng, length, target, chunks)`` returns the positions of a sequence of ``length`` tokens, ascending
            from 0: ``target`` is the context that training is for [tokens], at least ``length``, and ``chunks`` the
            number of parts that the sequence is cut into where the policy skips.
    """

    name: str
    skips: bool
    draw: Callable[[random.Random, int, int, int], list[int]]


def contiguous(rng: random.Random, length: int, target: int, chunks: int) -> list[int]:
    """Returns 0 to ``length - 1``."""
    return list(range(length))


def pose(rng: random.Random, length: int, target: int, chunks: int) -> list[int]:
    """Returns positions that skip, so that a short sequence covers a long context: PoSE (arXiv 2309.10400).

    As in the paper: the sequence is cut into chunks whose lengths are drawn for every example (2 by
    default); the first begins at 0; chunk i is moved by a bias u_i, drawn evenly from u_(i-1) to
    ``target - length``, so that the last position is at most ``target - 1``. The text of the chunks is
    consecutive (the paper's v_i = 0; its code takes each chunk from where its positions say), because a
    short training sequence need not be part of a long document. Cuts are drawn evenly over all sets of
    places, so every position in ``[0, target)`` occurs; the paper's code draws the first chunk from the
    shorter half.
    """
    cuts = sorted(rng.sample(range(1, length), min(chunks, length) - 1))
    result: list[int] = []
    bias = 0
    for start, stop in zip([0, *cuts], [*cuts, length], strict=True):
        if start:
            bias = rng.randint(bias, target - length)
        result.extend(range(start + bias, stop + bias))
    return result


POLICIES = {
    policy.name: policy
    for policy in (
        PositionPolicy("contiguous", False, contiguous),
        PositionPolicy("pose", True, pose),
    )
}
