"""Fits rates to timings: seconds as a sum of amounts, each at a rate that is not negative."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

#: Rounds in which timings that stand out lose weight, and the least relative difference that one is weighted by.
_ROUNDS, _LEAST = 6, 1e-3


def fit_rates(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> tuple[float, ...]:
    """Returns the rates r >= 0 [s per unit] for which the sum of abs(row . r / seconds - 1) over all rows is least.

    Absolute differences are not squared, so a timing that something else disturbed moves them little; and they are
    relative, so a short pass says as much as a long one. Found by least squares with weights that are the inverse of the
    differences before. Of several solutions it is the one with the fewest and first columns.

    Args:
        rows: Amounts, one row a timing.
        seconds: Positive times, one a row.
    """
    import numpy as np

    relative = np.array(rows, dtype=float) / np.array(seconds, dtype=float)[:, None]
    scale = relative.max(axis=0)
    columns = [index for index in range(relative.shape[1]) if scale[index] > 0]
    scaled = relative[:, columns] / scale[columns]
    weights = np.ones(len(scaled))
    rates = np.zeros(len(columns))
    for _ in range(_ROUNDS):
        rates = _non_negative(scaled, weights)
        weights = 1 / np.maximum(np.abs(scaled @ rates - 1), _LEAST)
    found = [0.0] * relative.shape[1]
    for index, rate in zip(columns, rates, strict=True):
        found[index] = float(rate / scale[index])
    return tuple(found)


def _non_negative(rows: Any, weights: Any) -> Any:
    """Returns r >= 0 with the least sum of weights (row . r - 1)^2: the best of all solutions with some rates 0."""
    import numpy as np

    root = np.sqrt(weights)
    best, least = np.zeros(rows.shape[1]), float(weights.sum())
    for size in range(1, rows.shape[1] + 1):
        for chosen in combinations(range(rows.shape[1]), size):
            part, _, rank, _ = np.linalg.lstsq(rows[:, chosen] * root[:, None], root, rcond=None)
            if rank < size or part.min() < 0:
                continue
            error = float((weights * (rows[:, chosen] @ part - 1) ** 2).sum())
            if error < least * (1 - 1e-9) - 1e-15:
                best, least = np.zeros(rows.shape[1]), error
                best[list(chosen)] = part
    return best
