"""Ticks of a logarithmic axis of values: at round numbers, and enough of them to read the values in between."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: The fewest ticks that let a reader estimate a value, and the most that there is room for.
FEWEST, MOST = 3, 7

#: Leading digits of ticks, sparse ones first; a range too narrow for all of them has equal steps.
_DIGITS = ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))

#: From this ratio on, powers of ten are enough.
_WIDE = 300.0


def value_ticks(low: float, high: float) -> list[float]:
    """Returns at least two ticks, and mostly three to seven, within the ends of an axis.

    Args:
        low: Lower end, more than 0.
        high: Upper end.
    """
    if high / low >= _WIDE:
        decades = _of_digits(low, high, _DIGITS[0])
        if len(decades) >= FEWEST:
            return decades[:: -(-len(decades) // MOST)]
    for digits in _DIGITS[1:]:
        ticks = _of_digits(low, high, digits)
        if FEWEST <= len(ticks) <= MOST:
            return ticks
    return _equal(low, high)


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Returns labels with as many digits as are needed to make them differ."""
    for digits in range(6, 18):
        texts = [f"{tick:.{digits}g}" for tick in ticks]
        if len(set(texts)) == len(texts):
            break
    return texts


def _of_digits(low: float, high: float, digits: Sequence[float]) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found = (digit * 10.0**power for power in range(first, last + 1) for digit in digits)
    return [tick for tick in found if low <= tick <= high]


def _equal(low: float, high: float) -> list[float]:
    """Returns round numbers at equal distances."""
    from matplotlib.ticker import MaxNLocator

    for steps in (4, 5, 6, 8, 10):
        ticks = [float(tick) for tick in MaxNLocator(steps, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= FEWEST:
            break
    return inside
