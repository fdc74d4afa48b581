"""Means of what was measured, and their intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

#: Two-sided 95 % quantile of the normal distribution.
Z_95 = 1.959963984540054

#: How often documents are drawn for a bootstrap interval, and the seed of the draws.
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
    differences: Sequence[float], weights: Sequence[float] | None = None, seed: int = BOOTSTRAP_SEED
) -> tuple[float, float]:
    """Returns the bootstrap 95 % interval of a mean over documents.

    Percentile bootstrap, Efron (1979), doi 10.1214/aos/1176344552: documents are drawn with replacement, each
    with all its tokens. Seeded, so that a verdict is the same every time.

    Args:
        differences: A mean by document, such as the difference of two losses of the same tokens.
        weights: The weight of each, such as its number of tokens; all equal by default.
        seed: Chooses the draws.
    """
    counts = [1.0] * len(differences) if weights is None else list(weights)
    sums = [value * count for value, count in zip(differences, counts, strict=True)]
    return _interval(_resampled_ratios(sums, counts, seed))


def perplexity_interval(nll_sums: Sequence[float], num_tokens: Sequence[int]) -> tuple[float, float] | None:
    """Returns the bootstrap 95 % interval of a token-weighted perplexity over documents; None below two documents.

    Args:
        nll_sums: Summed losses by document [nats].
        num_tokens: Scored tokens by document; documents without any are left out.
    """
    scored = [(nll, float(count)) for nll, count in zip(nll_sums, num_tokens, strict=True) if count]
    if len(scored) < 2:
        return None
    sums, counts = zip(*scored, strict=True)
    low, high = _interval(_resampled_ratios(sums, counts, BOOTSTRAP_SEED))
    return math.exp(min(low, MAX_MEAN_NLL)), math.exp(min(high, MAX_MEAN_NLL))


def _resampled_ratios(numerators: Sequence[float], denominators: Sequence[float], seed: int) -> list[float]:
    """Returns ratios of sums over drawn documents, ascending."""
    rng, count = random.Random(seed), len(numerators)
    ratios = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(range(count), k=count)
        ratios.append(math.fsum(numerators[i] for i in drawn) / math.fsum(denominators[i] for i in drawn))
    return sorted(ratios)


def _interval(ascending: Sequence[float]) -> tuple[float, float]:
    last = len(ascending) - 1
    high = min(last, math.ceil(0.975 * len(ascending)) - 1)
    return ascending[last - high], ascending[high]


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


def summarize_scores(scores: Sequence[float], logprobs: Sequence[float | None], is_share: bool = False) -> ScoreSummary:
    """Returns the mean score of some trials, and its interval.

    Args:
        scores: One a trial, in [0, 1].
        logprobs: Log-probabilities of known answers [nats]; None if answers are generated.
        is_share: Whether scores may lie between 0 and 1.
    """
    known = [logprob for logprob in logprobs if logprob is not None]
    score, logprob = math.fsum(scores) / len(scores), math.fsum(known) / len(known) if known else None
    return ScoreSummary(score, len(scores), *score_interval(scores, is_share), logprob)


def score_interval(scores: Sequence[float], is_share: bool) -> tuple[float, float]:
    """Returns the 95 % interval of a mean score, both ends in [0, 1].

    Args:
        scores: One a trial, in [0, 1].
        is_share: Whether scores may lie between 0 and 1. Their interval is that of a bootstrap over trials;
            where all trials score alike it would be empty, and Wilson's is taken, which is wider than that of
            any scores with this mean.
    """
    total = math.fsum(scores)
    if is_share and len(set(scores)) > 1:
        low, high = paired_interval(scores)
        return max(0.0, low), min(1.0, high)
    low, _ = wilson_interval(math.floor(total), len(scores))
    _, high = wilson_interval(math.ceil(total), len(scores))
    return low, high
