"""Intervals for what was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

#: Two-sided 95 % quantile of the normal distribution.
Z_95 = 1.959963984540054


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Returns the Wilson 95 % interval of a proportion, both ends in [0, 1].

    Wilson (1927), doi 10.1080/01621459.1927.10502953. Unlike the normal approximation it is not empty
    at 0 or 1 successes in all.
    """
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, Z_95**2
    centre = share + z2 / (2 * trials)
    margin = Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    low, high = (centre - margin) / (1 + z2 / trials), (centre + margin) / (1 + z2 / trials)
    return (0.0 if successes == 0 else low), (1.0 if successes == trials else high)


def bootstrap_upper(values: Sequence[float], resamples: int = 1000, seed: int = 0) -> float:
    """Returns the upper end of the bootstrap 95 % interval of the mean of ``values``.

    Percentile bootstrap over the values, which are paired differences by document. Seeded, so that a
    verdict is the same every time.
    """
    rng = random.Random(seed)
    means = sorted(math.fsum(rng.choices(values, k=len(values))) / len(values) for _ in range(resamples))
    return means[min(resamples - 1, math.ceil(0.975 * resamples) - 1)]
