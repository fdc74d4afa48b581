"""The speed of this machine, from timed passes; what it says of other work is a range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from ropectl.timing.fit import fit_rates
from ropectl.timing.operations import Cost

#: How a cost is divided for a fit: into parts, each with a rate of its own.
Columns = Callable[[Cost], Sequence[float]]

Rates = tuple[float, ...]

#: Of many timings of a pass, the share that may be faster than the one that stands for a machine without other work.
_QUICK = 10


@dataclass(frozen=True)
class Span:
    """A time that is not known exactly [s].

    Attributes:
        low: The least that it will probably be.
        middle: What it will be if everything goes on as it was timed.
        high: The most that it will probably be.
    """

    low: float = 0.0
    middle: float = 0.0
    high: float = 0.0

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def __mul__(self, times: float) -> Span:
        return Span(self.low * times, self.middle * times, self.high * times)


@dataclass(frozen=True)
class Timed:
    """A pass that was timed, several times if possible.

    Attributes:
        cost: What it costs.
        seconds: How long it took each time.
    """

    cost: Cost
    seconds: Sequence[float]


@dataclass(frozen=True)
class Speed:
    """Rates that agree with what was timed.

    Attributes:
        columns: How costs are divided for them.
        low: Of the quickest timings, in several ways that agree with them.
        middle: Of all.
        high: Of the slower half, in several ways that agree with them.
    """

    columns: Columns
    low: Sequence[Rates]
    middle: Rates
    high: Sequence[Rates]

    @classmethod
    def of(cls, timed: Sequence[Timed], margin: float = 1.0) -> Speed:
        """Returns the speed of work in progress: one rate for all operations, and one for passes.

        A pass counts by the median of its timings, so that one that was disturbed does not; all rates are then raised by
        the share of time that disturbances took. The range is that of the rates without each pass in turn; where no more
        passes were timed than there are rates, each rate alone may be the reason for them.

        Args:
            timed: Passes of different sizes.
            margin: Factor by which the rest may differ from them, up and down.
        """
        rows = [each.cost.whole for each in timed]
        usual, quick = [median(each.seconds) for each in timed], [_quick(each.seconds) for each in timed]
        middle = fit_rates(rows, usual)
        mean, slow = _slowdown(timed, _expected(middle, rows))
        low = [_scaled(rates, 1 / margin) for rates in _possible(rows, quick)]
        high = [_scaled(rates, slow * margin) for rates in _possible(rows, usual)]
        return cls(_whole, low, _scaled(middle, mean), high)

    @classmethod
    def calibrated(cls, timed: Sequence[Timed], alone: Sequence[float], margin: float, slowed: float | None) -> Speed:
        """Returns the speed of other work, a rate for each part of a cost.

        How the parts of a pass compare is told from its times without other work, which hardly vary; the timings then say
        how fast operations and passes are in all. The range is that without each pass in turn. On a busy machine it goes
        from no other work to as much as slowed the slower half of the timings, of which its middle is the geometric one, or
        as much as its load says.

        Args:
            timed: Passes of different sizes.
            alone: The time of each without other work [s].
            margin: Factor by which the work may differ from them, up and down.
            slowed: By how much other work slows this one at least, as the load of the machine says; None on a quiet one.
        """
        rows, shapes = [each.cost.parts for each in timed], _possible([each.cost.parts for each in timed], alone)
        if slowed is not None:
            _, slow = _slowdown(timed, alone)
            low, middle = shapes, _scaled(shapes[0], math.sqrt(slow))
            high = [_scaled(each, max(slow, slowed)) for each in shapes]
        else:
            usual, quick = [median(each.seconds) for each in timed], [_quick(each.seconds) for each in timed]
            agreeing = _agreeing(shapes[0], rows, usual)
            mean, slow = _slowdown(timed, _expected(agreeing, rows))
            low, middle = [_agreeing(each, rows, quick) for each in shapes], _scaled(agreeing, mean)
            high = [_scaled(_agreeing(each, rows, usual), slow) for each in shapes]
        return cls(
            _parts, [_scaled(each, 1 / margin) for each in low], middle, [_scaled(each, margin) for each in high]
        )

    def seconds(self, cost: Cost) -> Span:
        """Returns how long some work takes."""
        row = self.columns(cost)
        middle = _seconds(self.middle, row)
        low = min(middle, *(_seconds(rates, row) for rates in self.low))
        high = max(middle, *(_seconds(rates, row) for rates in self.high))
        return Span(low, middle, high)


def spread(timed: Sequence[Timed]) -> float:
    """Returns how much longer the slowest timings of each pass took than its quickest, over all passes (1: no longer)."""
    return sum(max(each.seconds) for each in timed) / sum(min(each.seconds) for each in timed)


def _whole(cost: Cost) -> Sequence[float]:
    return cost.whole


def _parts(cost: Cost) -> Sequence[float]:
    return cost.parts


def _quick(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) // _QUICK]


def _seconds(rates: Rates, row: Sequence[float]) -> float:
    return sum(rate * amount for rate, amount in zip(rates, row, strict=True))


def _scaled(rates: Rates, factor: float) -> Rates:
    return tuple(rate * factor for rate in rates)


def _expected(rates: Rates, rows: Sequence[Sequence[float]]) -> list[float]:
    return [_seconds(rates, row) for row in rows]


def _slowdown(timed: Sequence[Timed], expected: Sequence[float]) -> tuple[float, float]:
    """Returns the time that all timings took, and their slower half, as multiples of what was expected of each."""
    pairs = sorted(
        ((taken / usual, usual) for each, usual in zip(timed, expected, strict=True) for taken in each.seconds),
        reverse=True,
    )
    half, taken, passed, slow = sum(usual for _, usual in pairs) / 2, 0.0, 0.0, 1.0
    for ratio, usual in pairs:
        taken, before, passed = taken + ratio * usual, passed, passed + usual
        if before < half:
            slow = taken / passed
    mean = taken / passed
    return mean, max(mean, slow)


def _agreeing(shape: Rates, rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> Rates:
    """Returns rates that agree with timings and whose operations compare as those of a shape; the last is of passes."""
    *operations, _ = shape
    faster, passes = fit_rates([(_seconds(tuple(operations), row[:-1]), row[-1]) for row in rows], seconds)
    return (*(rate * faster for rate in operations), passes)


def _possible(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[Rates]:
    """Returns rates that agree with timings in different ways, the likeliest first.

    The others leave out a timing each, if the rest still tells all rates; never the longest, which says most about what is
    longer still. Where there are no more timings than rates, each rate alone is the reason for them.
    """
    found = [fit_rates(rows, seconds)]
    used = [any(row[index] for row in rows) for index in range(len(rows[0]))]
    if len(rows) <= sum(used):
        for index in range(len(used)):
            if all(row[index] for row in rows):
                alone = [[amount if place == index else 0.0 for place, amount in enumerate(row)] for row in rows]
                found.append(fit_rates(alone, seconds))
        return found
    longest = seconds.index(max(seconds))
    for left_out in set(range(len(rows))) - {longest}:
        others = [row for place, row in enumerate(rows) if place != left_out]
        if [any(row[index] for row in others) for index in range(len(used))] == used:
            found.append(fit_rates(others, [s for place, s in enumerate(seconds) if place != left_out]))
    return found
