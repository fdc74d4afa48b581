"""Puts the scores of trials together: their mean and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ropectl.evaluate.statistics import bootstrap_upper, wilson_interval


class ScoreSummary(NamedTuple):
    """Some trials as one.

    Attributes:
        score: Mean score, in [0, 1].
        trials: Trials.
        ci_low: Lower end of the 95 % interval of the score.
        ci_high: Upper end.
        answer_logprob: Mean log-probability of the whole answer [nats]; None where answers are generated.
    """

    score: float
    trials: int
    ci_low: float
    ci_high: float
    answer_logprob: float | None


def summarize(scores: Sequence[float], logprobs: Sequence[float | None], is_share: bool = False) -> ScoreSummary:
    """Returns some trials as one.

    Args:
        scores: One a trial, in [0, 1].
        logprobs: Log-probabilities of known answers [nats]; None where answers are generated.
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
        return max(0.0, -bootstrap_upper([-score for score in scores])), min(1.0, bootstrap_upper(scores))
    low, _ = wilson_interval(math.floor(total), len(scores))
    _, high = wilson_interval(math.ceil(total), len(scores))
    return low, high
