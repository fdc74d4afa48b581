"""Intervals for what was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

#: Two-sided 95 % quantile of the normal distribution.
Z_95 = 1.959963984540054

#: How often documents are drawn for a bootstrap interval, and what chooses the draws.
RESAMPLES, BOOTSTRAP_SEED = 1000, 0

#: A larger mean loss has no perplexity that a float64 can hold [nats].
MAX_MEAN_NLL = 700.0


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


def paired_interval(
    differences: Sequence[float],
    weights: Sequence[float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> tuple[float, float]:
    """Returns the bootstrap 95 % interval of a mean over documents.

    Percentile bootstrap, Efron (1979), doi 10.1214/aos/1176344552: documents are drawn with replacement, each
    with all its tokens. Seeded, so that a verdict is the same every time.

    Args:
        differences: A mean by document, such as the difference of two losses of the same tokens.
        weights: What each counts, such as its tokens; equally by default.
        resamples: How often the documents are drawn.
        seed: Chooses the draws.
    """
    counts = [1.0] * len(differences) if weights is None else list(weights)
    sums = [value * count for value, count in zip(differences, counts, strict=True)]
    return _interval(_resampled_ratios(sums, counts, resamples, seed))


def perplexity_interval(
    nll_sums: Sequence[float], num_tokens: Sequence[int], resamples: int = RESAMPLES, seed: int = BOOTSTRAP_SEED
) -> tuple[float, float] | None:
    """Returns the bootstrap 95 % interval of a token-weighted perplexity over documents; None below two documents.

    Args:
        nll_sums: Summed losses by document [nats].
        num_tokens: Scored tokens by document; documents without any are left out.
        resamples: How often the documents are drawn.
        seed: Chooses the draws.
    """
    scored = [(nll, float(count)) for nll, count in zip(nll_sums, num_tokens, strict=True) if count]
    if len(scored) < 2:
        return None
    sums, counts = zip(*scored, strict=True)
    low, high = _interval(_resampled_ratios(sums, counts, resamples, seed))
    return math.exp(min(low, MAX_MEAN_NLL)), math.exp(min(high, MAX_MEAN_NLL))


def bootstrap_upper(values: Sequence[float], resamples: int = RESAMPLES, seed: int = BOOTSTRAP_SEED) -> float:
    """Returns the upper end of the bootstrap 95 % interval of the mean of ``values``, paired differences by document."""
    return paired_interval(values, None, resamples, seed)[1]


def _resampled_ratios(
    numerators: Sequence[float], denominators: Sequence[float], resamples: int, seed: int
) -> list[float]:
    """Ratios of sums over drawn documents, ascending."""
    rng, count = random.Random(seed), len(numerators)
    ratios = []
    for _ in range(resamples):
        drawn = rng.choices(range(count), k=count)
        ratios.append(math.fsum(numerators[i] for i in drawn) / math.fsum(denominators[i] for i in drawn))
    return sorted(ratios)


def _interval(ascending: Sequence[float]) -> tuple[float, float]:
    last = len(ascending) - 1
    high = min(last, math.ceil(0.975 * len(ascending)) - 1)
    return ascending[last - high], ascending[high]
