"""Says which reading a program computes, from log-probabilities of the same tokens.

The distance of a reading is the mean absolute difference of log-probabilities. Arithmetic and quantisation add noise
that is the same for all readings; two readings are compared token by token, so that it cancels.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ropectl.runtimes.evidence import AGREEMENT

#: No arithmetic of the same weights is further off on average; 4-bit weights of a small model are off by about 0.1 [nats a token].
MOST_NOISE = 0.35

#: How far the nearest reading may be off past the trained length, in terms of how far it is off before. A cache in
#: half precision alone makes it several times as much, but of little.
MOST_GROWTH = 2.5

#: Distances below this are arithmetic at any length [nats a token].
LEAST_NOISE = 2e-3

#: What grows is not put down to noise where it is more than this share of what the next reading is off.
MOST_GROWN = 0.2

#: Half width of an interval, in standard errors: two readings are told apart where it does not hold 0.
SURE = 3.0

#: Neighbouring tokens err alike: intervals are over this many blocks of them.
BLOCKS = 32

#: The share of the way to another reading that what is left over may point, and that is still put down to noise.
MOST_SHARE = 0.25


#: A fault is not named where what it leaves unexplained is as much as it explains beyond the next reading.
_LITTLE_NEARER = "the nearest leaves {:.2g} nats a token unexplained, and the next only {:.2g} more"


@dataclass(frozen=True)
class Interval:
    """A mean with its interval.

    Attributes:
        mean: The mean.
        low: Lower end.
        high: Upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """How well a reading explains what a program said.

    Attributes:
        distance: Mean absolute difference [nats a token].
        below: The same up to the trained length; None without such tokens.
        beyond: The same past it.
        largest: Largest difference on one token [nats].
        behind: How much further off it is than the nearest reading, paired by token [nats a token].
        fits: Whether it cannot be told from the nearest.
    """

    distance: float
    below: float | None
    beyond: float | None
    largest: float
    behind: Interval
    fits: bool


@dataclass(frozen=True)
class Judgement:
    """The reading that fits.

    Attributes:
        fits: One for each reading.
        nearest: Index of the nearest.
        winner: Index of the reading that the program computes; None where none fits, or several do.
        margin: How much further off the next reading is that can be told apart; None where there is none.
        alike: Indices of the readings that fit equally well and are not the winner.
        reason: Why none of the readings fits; "" where one does.
    """

    fits: list[Fit]
    nearest: int
    winner: int | None
    margin: Interval | None
    alike: list[int]
    reason: str


def judge(theirs: Sequence[float], readings: Sequence[Sequence[float]], is_beyond: Sequence[bool]) -> Judgement:
    """Returns which reading fits.

    Args:
        theirs: What the program said, one log-probability a compared token [nats].
        readings: The same under each reading, the one that was meant first.
        is_beyond: Which tokens are past the trained length.
    """
    errors = [[abs(a - b) for a, b in zip(theirs, reading, strict=True)] for reading in readings]
    distances = [statistics.fmean(each) for each in errors]
    nearest = min(range(len(readings)), key=lambda k: distances[k])
    behind = [interval([a - b for a, b in zip(each, errors[nearest], strict=True)]) for each in errors]
    fits = [
        Fit(
            distances[k],
            _mean([e for e, past in zip(errors[k], is_beyond, strict=True) if not past]),
            _mean([e for e, past in zip(errors[k], is_beyond, strict=True) if past]),
            max(errors[k]),
            behind[k],
            k == nearest or not behind[k].low > 0,
        )
        for k in range(len(readings))
    ]
    reason = _unexplained(theirs, readings, nearest, fits)
    alike = [k for k, fit in enumerate(fits) if fit.fits]
    if reason:
        return Judgement(fits, nearest, None, None, [], reason)
    # What differs from the meant computation by less than the program's own arithmetic is harmless either way.
    harmless = max(AGREEMENT, distances[nearest] / 4)
    apart = [k for k in alike if _distance(readings[k], readings[0]) > harmless]
    winner = None if len(alike) > 1 and apart else 0 if 0 in alike else nearest
    others = [k for k, fit in enumerate(fits) if not fit.fits]
    runner_up = min(others, key=lambda k: distances[k], default=None)
    margin = None if winner is None or runner_up is None else behind[runner_up]
    if winner and margin is not None and margin.mean < distances[winner]:
        return Judgement(fits, nearest, None, None, [], _LITTLE_NEARER.format(distances[winner], margin.mean))
    return Judgement(fits, nearest, winner, margin, [k for k in alike if k != winner], "")


def interval(values: Sequence[float]) -> Interval:
    """Returns the mean of values that neighbours share some of, with its interval over blocks of them."""
    count = min(BLOCKS, len(values))
    edges = [round(k * len(values) / count) for k in range(count + 1)]
    means = [statistics.fmean(values[a:b]) for a, b in itertools.pairwise(edges)]
    center = statistics.fmean(values)
    half = SURE * statistics.stdev(means) / math.sqrt(count) if count > 1 else math.inf
    return Interval(center, center - half, center + half)


def _unexplained(
    theirs: Sequence[float], readings: Sequence[Sequence[float]], nearest: int, fits: Sequence[Fit]
) -> str:
    """Returns why even the nearest reading does not explain what the program said; "" where it does."""
    fit, others = fits[nearest], [other.beyond for other in fits if not other.fits and other.beyond is not None]
    if fit.distance > MOST_NOISE:
        return f"the nearest is {fit.distance:.2g} nats a token off: more than the arithmetic of any type of weights"
    below, beyond = fit.below, fit.beyond
    if below is not None and beyond is not None and others:
        grows = beyond > MOST_GROWTH * max(below, LEAST_NOISE)
        if grows and beyond > MOST_GROWN * min(others):
            return (
                f"the nearest is {beyond:.1e} nats a token off past the trained length, and {below:.1e} up to it: "
                "noise does not grow so"
            )
    left = [a - b for a, b in zip(theirs, readings[nearest], strict=True)]
    for reading in readings:
        if reading is readings[nearest] or fit.distance <= AGREEMENT:
            continue
        share = _share(left, [a - b for a, b in zip(reading, readings[nearest], strict=True)])
        if abs(share.mean) > MOST_SHARE and (share.low > 0 or share.high < 0):
            return "what is left over follows a change of the rotation: it lies between known readings, or past one"
    return ""


def _share(left: Sequence[float], way: Sequence[float]) -> Interval:
    """Returns how much of the way to another reading what is left over goes: 0 for noise, 1 for that reading."""
    shift, change = statistics.fmean(left), statistics.fmean(way)
    scale = statistics.fmean((w - change) ** 2 for w in way)
    if scale == 0:
        return Interval(0.0, 0.0, 0.0)
    return interval([(a - shift) * (w - change) / scale for a, w in zip(left, way, strict=True)])


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return statistics.fmean(abs(a - b) for a, b in zip(one, other, strict=True))


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
