"""Paired differences of two methods on the same documents or the same prompts, and which of several lead.

Differences are far better known than the numbers themselves: what makes a text hard is the same under both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ropectl.evaluate.judging.statistics import Interval, independent_units, mean_interval, wilson_interval
from ropectl.records import NO_CHANGE, Difference, PerplexityPoint

#: A depth, and the number of a trial at it.
Trial = tuple[float, int]

#: Two results are told apart where chance alone would part them more in one of twenty cases at most.
LEVEL = 0.05


def loss_difference(
    measure: str, ours: PerplexityPoint, theirs: PerplexityPoint, clusters: Sequence[int] | None = None
) -> Difference | None:
    """Returns how much higher the mean loss is than another on the same tokens; None if they are not the same.

    Args:
        measure: The protocol.
        ours: One method's.
        theirs: The other's.
        clusters: The document of each unit; a document of its own by default.
    """
    counts = tokens_by_document(ours)
    if not counts or counts != tokens_by_document(theirs):
        return None
    if len(clusters or ()) != len(counts):  # a record that was edited
        clusters = None
    sums = [a - b for a, b in zip(ours.document_nll_sums, theirs.document_nll_sums, strict=True)]
    value = math.fsum(sums) / math.fsum(counts)
    interval = mean_interval(sums, counts, clusters)
    low, high = interval or (None, None)
    return Difference(
        measure=measure,
        length=ours.context_length,
        value=value,
        ci_low=low,
        ci_high=high,
        units=independent_units(len(sums), clusters),
        # Passes differ by rounding, which is no difference of methods however surely it is there.
        told_apart=None if interval is None else _excludes_zero(interval) and abs(value) >= NO_CHANGE,
    )


def tokens_by_document(point: PerplexityPoint) -> list[float]:
    """Returns the scored tokens of each unit, also of records that hold only their sum; empty where nothing was scored."""
    units = len(point.document_nll_sums)
    if point.perplexity is None or not units:
        return []
    return list(map(float, point.document_num_tokens)) or [point.num_tokens / units] * units


def score_difference(
    measure: str, length: int, ours: Mapping[Trial, float], theirs: Mapping[Trial, float]
) -> Difference | None:
    """Returns the difference of two mean scores on the same prompts; None where there are none in common, or other ones.

    Args:
        measure: ``passkey`` or ``task``.
        length: Tokens of prompt and answer.
        ours: Score of each trial, in [0, 1].
        theirs: The other's.
    """
    if not ours or ours.keys() != theirs.keys():
        return None
    pairs = [(ours[key], theirs[key]) for key in ours]
    value = math.fsum(a - b for a, b in pairs) / len(pairs)
    p_value = None
    interval: Interval | None
    if all(score in (0.0, 1.0) for pair in pairs for score in pair):
        p_value = mcnemar_p_value(pairs.count((1.0, 0.0)), pairs.count((0.0, 1.0)))
        interval = shares_interval(pairs)
        if p_value > LEVEL:  # the exact test decides, and what is printed agrees with it
            interval = min(interval[0], 0.0), max(interval[1], 0.0)
    else:
        interval = mean_interval([a - b for a, b in pairs])
    low, high = interval or (None, None)
    return Difference(
        measure=measure,
        length=length,
        value=value,
        ci_low=low,
        ci_high=high,
        units=len(pairs),
        told_apart=None if interval is None else _excludes_zero(interval),
        p_value=p_value,
    )


def mcnemar_p_value(only_ours: int, only_theirs: int) -> float:
    """Returns the two-sided p-value of the exact McNemar test (1947, doi 10.1007/BF02295996).

    Args:
        only_ours: Trials that only the first answers.
        only_theirs: Trials that only the second answers.
    """
    count = only_ours + only_theirs
    tail = sum(math.comb(count, number) for number in range(min(only_ours, only_theirs) + 1))
    return min(1.0, float(2 * tail / 2**count))


def shares_interval(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Returns the 95 % interval of the difference of two shares of the same trials.

    Newcombe's hybrid score interval with continuity correction of the correlation (1998, method 10).

    Args:
        pairs: Whether the first and the second answered, 1 or 0, for each trial.
    """
    count = len(pairs)
    both, ours, theirs, none = (pairs.count(pair) for pair in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)))
    first, second = (both + ours) / count, (both + theirs) / count
    (low1, high1), (low2, high2) = wilson_interval(both + ours, count), wilson_interval(both + theirs, count)
    product = (both + ours) * (theirs + none) * (both + theirs) * (ours + none)
    joint = float(both * none - ours * theirs)
    if joint > 0:
        joint = max(joint - count / 2, 0.0)
    phi = joint / math.sqrt(product) if product else 0.0
    below, above = first - low1, high2 - second
    left = math.sqrt(max(0.0, below**2 - 2 * phi * below * above + above**2))
    above, below = high1 - first, second - low2
    right = math.sqrt(max(0.0, above**2 - 2 * phi * above * below + below**2))
    return max(-1.0, first - second - left), min(1.0, first - second + right)


def _excludes_zero(interval: Interval) -> bool:
    return interval[0] > 0 or interval[1] < 0


@dataclass(frozen=True)
class Leaders:
    """The best of several results.

    Attributes:
        best: Index of the best.
        tied: Indices of the others that it is not told apart from.
    """

    best: int
    tied: list[int]


def leaders(
    values: Sequence[float | None], difference: Callable[[int, int], Difference | None], smallest: bool = True
) -> Leaders | None:
    """Returns the best result, and those that it is not told apart from; None where nothing tells.

    No correction for many comparisons is needed: the best is named alone only where it differs from every other, which
    chance alone makes no more likely than that it differs from one.

    Args:
        values: Of each; None or not finite where it is missing.
        difference: Returns the paired difference of two of them; None where they cannot be paired.
        smallest: Whether less is better.
    """
    known = [index for index, value in enumerate(values) if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return None
    best = min(known, key=lambda index: (values[index] or 0.0) if smallest else -(values[index] or 0.0))
    tied = []
    for index in known:
        if index == best:
            continue
        found = difference(best, index)
        if found is None or found.told_apart is None:
            return None
        if not found.told_apart:
            tied.append(index)
    return Leaders(best, tied)
