"""Means of what was measured, and their 95 % intervals.

The unit of losses is the document: tokens of one text are not independent. Windows cut from the same document belong
together (they are a cluster); where there is one document only, its windows are the units, and the interval speaks of
that text alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from statistics import stdev
from typing import TYPE_CHECKING, NamedTuple

from ropectl.records import FEW_DOCUMENTS, SeedScore

if TYPE_CHECKING:
    from numpy import ndarray

#: Two-sided 95 % quantile of the normal distribution.
Z_95 = 1.959963984540054

#: Two-sided 95 % quantiles of Student's distribution with 1 to 6 degrees of freedom.
_STUDENT_95 = (12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836, 2.446911851)

#: How often documents are drawn for a bootstrap interval, and the seed of the draws.
RESAMPLES, BOOTSTRAP_SEED = 5000, 0

#: With more documents a mean is normally distributed whatever their losses are, and draws would only take time and memory.
MOST_DRAWN = 500

#: A larger mean loss has no perplexity that a float64 can hold [nats].
MAX_MEAN_NLL = 700.0

Interval = tuple[float, float]


def wilson_interval(successes: float, trials: int) -> Interval:
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
    return (0.0 if successes <= 0 else low), (1.0 if successes >= trials else high)


def student_95(degrees: int) -> float:
    """Returns the two-sided 95 % quantile of Student's distribution, to four digits or more.

    From 7 degrees of freedom on by its expansion around the normal distribution (Abramowitz and Stegun, 26.7.5).
    """
    if degrees <= len(_STUDENT_95):
        return _STUDENT_95[degrees - 1]
    z: float = Z_95
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / degrees**power for power, term in enumerate(terms, 1))


def independent_units(count: int, clusters: Sequence[int] | None = None) -> int:
    """Returns the number of units that an interval rests on: documents, or the windows of a single one."""
    distinct = len(set(clusters)) if clusters else count
    return count if distinct == 1 else distinct


def mean_interval(
    sums: Sequence[float], counts: Sequence[float] | None = None, clusters: Sequence[int] | None = None
) -> Interval | None:
    """Returns the 95 % interval of a mean over units, ``sum(sums) / sum(counts)``; None below two units.

    Student's interval, wider on the side where a studentized bootstrap (Efron 1979, doi 10.1214/aos/1176344552; Hall 1988,
    doi 10.1214/aos/1176350933) finds a longer tail: documents are drawn with replacement, each with all its windows and
    tokens, and the draws tell the distribution of the error divided by its own estimate. Percentiles of drawn means would
    be too narrow: at 8 documents they hold the truth in 88 % instead of 95 %. Below 8 documents draws say nothing of
    tails, and above 500 tails do not matter: the interval is Student's alone. Seeded, so that a verdict is the same every time.

    Args:
        sums: Of each unit, such as its summed losses [nats].
        counts: Of each unit, such as its tokens; 1 by default. Units of 0 are left out.
        clusters: The document of each unit; a document of its own by default.
    """
    import numpy as np

    values, weights = _by_document(sums, counts or [1.0] * len(sums), clusters)
    units = len(values)
    if units < 2:
        return None
    total = math.fsum(weights)
    mean = math.fsum(values) / total
    weight = np.array(weights)
    rest = np.array(values) - mean * weight
    error = math.sqrt(units / (units - 1) * float(rest @ rest)) / total
    if error == 0.0:
        return mean, mean
    student = student_95(units - 1)
    low, high = _studentized(rest, weight, error) if FEW_DOCUMENTS <= units <= MOST_DRAWN else (-student, student)
    return mean - max(high, student) * error, mean - min(low, -student) * error


def _by_document(
    sums: Sequence[float], counts: Sequence[float], clusters: Sequence[int] | None
) -> tuple[list[float], list[float]]:
    """Returns sums and counts of the units that an interval rests on."""
    several = clusters if clusters and len(set(clusters)) > 1 else range(len(sums))
    values: dict[int, list[float]] = {}
    weights: dict[int, list[float]] = {}
    for value, count, cluster in zip(sums, counts, several, strict=True):
        if count:
            values.setdefault(cluster, []).append(value)
            weights.setdefault(cluster, []).append(count)
    return [math.fsum(own) for own in values.values()], [math.fsum(own) for own in weights.values()]


def _studentized(rest: ndarray, weight: ndarray, error: float) -> Interval:
    """Returns the 2.5 and 97.5 % quantiles of the errors of drawn means, each divided by its own estimate.

    Draws without spread, of which there are many where most units are alike, have no such ratio and are left out.

    Args:
        rest: What each unit adds to the mean's error.
        weight: Its weight.
        error: The estimated error of the mean.
    """
    import numpy as np

    units = len(rest)
    drawn = _draws(units)
    total = drawn @ weight
    shift = drawn @ rest / total
    squares = drawn @ rest**2 - 2 * shift * (drawn @ (rest * weight)) + shift**2 * (drawn @ weight**2)
    own = np.sqrt(units / (units - 1) * np.maximum(squares, 0.0)) / total
    spread = own > 1e-9 * error
    low, high = np.quantile(shift[spread] / own[spread], [0.025, 0.975])
    return float(low), float(high)


@lru_cache(maxsize=8)
def _draws(units: int) -> ndarray:
    """Returns how often each unit is in each draw, (RESAMPLES, units)."""
    import numpy as np

    rng = random.Random(BOOTSTRAP_SEED)
    drawn = np.array(rng.choices(range(units), k=RESAMPLES * units)).reshape(RESAMPLES, units)
    return np.stack([np.bincount(row, minlength=units) for row in drawn]).astype(float)


def perplexity_interval(
    nll_sums: Sequence[float], num_tokens: Sequence[int], clusters: Sequence[int] | None = None
) -> Interval | None:
    """Returns the 95 % interval of a token-weighted perplexity over documents; None below two documents.

    Args:
        nll_sums: Summed losses by unit [nats].
        num_tokens: Scored tokens by unit; those without any are left out.
        clusters: The document of each unit; a document of its own by default.
    """
    found = mean_interval(nll_sums, num_tokens, clusters)
    if found is None:
        return None
    low, high = found
    return math.exp(min(low, MAX_MEAN_NLL)), math.exp(min(high, MAX_MEAN_NLL))


class ScoreSummary(NamedTuple):
    """The scores of some trials together.

    Attributes:
        score: Mean score, in [0, 1].
        trials: Trials.
        ci_low: Lower end of the 95 % interval of the score.
        ci_high: Upper end.
        answer_logprob: Mean log-probability of the whole answer [nats]; None if answers are generated.
    """

    score: float
    trials: int
    ci_low: float
    ci_high: float
    answer_logprob: float | None


def summarize_scores(scores: Sequence[float], logprobs: Sequence[float | None]) -> ScoreSummary:
    """Returns the mean score of some trials, and its interval.

    Args:
        scores: One a trial, in [0, 1].
        logprobs: Log-probabilities of known answers [nats]; None if answers are generated.
    """
    known = [logprob for logprob in logprobs if logprob is not None]
    score, logprob = math.fsum(scores) / len(scores), math.fsum(known) / len(known) if known else None
    return ScoreSummary(score, len(scores), *score_interval(scores), logprob)


def by_seed(scores: Sequence[float], seeds: Sequence[int]) -> tuple[list[SeedScore], float | None]:
    """Returns the mean score of each seed, and the standard deviation of these means; nothing for a single seed.

    Args:
        scores: One a trial, those of a seed in a row.
        seeds: The seeds in this order, each with equally many trials.
    """
    if len(seeds) < 2:
        return [], None
    each = len(scores) // len(seeds)
    parts = [scores[index * each : (index + 1) * each] for index in range(len(seeds))]
    means = [SeedScore(seed, math.fsum(own) / each, each) for seed, own in zip(seeds, parts, strict=True)]
    return means, stdev(one.score for one in means)


def score_interval(scores: Sequence[float]) -> Interval:
    """Returns the 95 % interval of a mean score, both ends in [0, 1].

    Wilson's where trials are right or wrong, or all alike: it is wider than that of any scores with their mean. Else that
    of :func:`mean_interval` over trials.

    Args:
        scores: One a trial, in [0, 1].
    """
    if set(scores) <= {0.0, 1.0} or len(set(scores)) == 1:
        return wilson_interval(math.fsum(scores), len(scores))
    found = mean_interval(scores)
    assert found is not None, "two scores that differ"
    return max(0.0, found[0]), min(1.0, found[1])
