"""Computes how the mean attention score falls with distance, and the smallest base that keeps it from turning negative.

For a query and a key that are equal, with the same norm in every pair, the rotated score at distance m is
B(m) = 1/P * sum_i cos(m * inv_freq_i): 1 at m = 0. Where it is negative, a similar token far away counts for
less than a random one. Legend: P rotary pairs, M distances. All arithmetic is float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from ropectl.rope.frequencies import base_inv_freq

#: Points of a curve; each stands for all distances around it.
NUM_POINTS = 64

#: Distances at a time, to bound memory: 64 pairs of this many float64 cosines are 8 MiB.
_CHUNK = 16_384

#: Bases are tried upwards in steps of this share, wider past the length; then the last step is halved down.
_BASE_STEP, _BASE_STEP_LENGTH, _BASE_TOLERANCE = 0.005, 131_072, 1e-3

#: The largest base that is tried.
LARGEST_BASE = 1e15


def mean_scores(inv_freq: Sequence[float], distances: torch.Tensor) -> torch.Tensor:
    """Returns B(m) at each distance, shape (M,), in [-1, 1].

    Args:
        inv_freq: (P,) [radians/token].
        distances: (M,) [tokens].
    """
    table = torch.tensor(inv_freq, dtype=torch.float64)
    starts = range(0, len(distances), _CHUNK)
    chunks = [torch.outer(distances[start : start + _CHUNK].double(), table).cos().mean(-1) for start in starts]
    return torch.cat(chunks)


def first_negative(inv_freq: Sequence[float], length: int) -> int | None:
    """Returns the first distance up to ``length`` at which B(m) < 0 [tokens], None if there is none."""
    start, size = 1, 256
    while start <= length:
        distances = torch.arange(start, min(start + size, length + 1))
        below = (mean_scores(inv_freq, distances) < 0).nonzero()
        if below.numel():
            return start + int(below[0])
        start, size = start + size, min(size * 4, _CHUNK)
    return None


def lowest_base(rotary_dim: int, length: int) -> float | None:
    """Returns the smallest base tried with B(m) >= 0 for every m up to ``length``.

    The lower bound of the base for a context: Base of RoPE Bounds Context Length, arXiv 2405.14591. Around
    it, bases that work and bases that fail alternate, so it is an order of magnitude and a first digit. The
    returned value does work; bases are tried upwards, 0.5 % apart (more past 131072 tokens).

    Args:
        rotary_dim: d.
        length: The context [tokens].

    Returns:
        None where no base up to 1e15 works, as for two rotated dimensions.
    """
    step = 1 + _BASE_STEP * max(1.0, length / _BASE_STEP_LENGTH)
    base, failed_at = step, 1
    while base < LARGEST_BASE:
        failed = _failure(rotary_dim, base, length, failed_at)
        if failed is None:
            return _refine(rotary_dim, base / step, base, length)
        base, failed_at = base * step, failed
    return None


def _failure(rotary_dim: int, base: float, length: int, near: int) -> int | None:
    """Returns a distance at which a base fails, None if there is none.

    Neighbouring bases fail at neighbouring distances, so those are tried first, then a sample of all.
    """
    inv_freq = base_inv_freq(rotary_dim, base)
    around = range(max(1, int(near * 0.98) - 2), min(length, int(near * 1.02) + 2) + 1)
    for distances in (around[:: max(1, len(around) // 256)], range(1, length + 1, max(1, length // 8192))):
        scores = mean_scores(inv_freq, torch.tensor(distances))
        lowest = int(scores.argmin())
        if scores[lowest] < 0:
            return distances[lowest]
    return first_negative(inv_freq, length)


def _refine(rotary_dim: int, fails: float, works: float, length: int) -> float:
    while works / fails - 1 > _BASE_TOLERANCE:
        middle = (fails * works) ** 0.5
        if first_negative(base_inv_freq(rotary_dim, middle), length) is None:
            works = middle
        else:
            fails = middle
    return works


def decay_curve(inv_freq: Sequence[float], length: int) -> dict[str, Any]:
    """Returns B(m) over all distances up to ``length``, thinned out evenly on a logarithmic axis, as JSON values.

    Each point gives mean, lowest and highest value of the distances that are nearest to it.

    Args:
        inv_freq: (P,) [radians/token].
        length: The largest distance [tokens].
    """
    scores = mean_scores(inv_freq, torch.arange(1, length + 1))
    edges = {round((length + 1) ** (point / NUM_POINTS)) for point in range(NUM_POINTS + 1)}
    bins = list(pairwise(sorted(edges)))
    parts = [scores[start - 1 : end - 1] for start, end in bins]
    return {
        "distances": [round(math.sqrt(start * (end - 1)), 1) for start, end in bins],
        "mean": [float(part.mean()) for part in parts],
        "low": [float(part.min()) for part in parts],
        "high": [float(part.max()) for part in parts],
        "first_negative": first_negative(inv_freq, length),
    }
