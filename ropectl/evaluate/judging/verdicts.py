"""Verdicts on measurements: how far a method models text, how far it uses it, and what it costs up to L."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ropectl.evaluate.judging.paired import loss_difference
from ropectl.evaluate.judging.statistics import Z_95, student_95
from ropectl.records import Difference, LengthVerdict, Outcome, PerplexityPoint

#: Length [tokens], score in [0, 1], trials, and the ends of the score's 95 % interval.
ScoredLength = tuple[int, float, int, float, float]

#: More documents or prompts than these are no advice.
MOST_UNITS = 100_000


def qualified_length(entries: Iterable[tuple[int, bool]], trained_length: int) -> int:
    """Returns the length up to which every measured length from the trained one on qualifies.

    Lengths shorter than the trained one never count against it. If no length from the trained one on qualifies, it is
    the longest of the shorter ones that does.

    Args:
        entries: Length [tokens], and whether it qualifies, in any order.
        trained_length: L [tokens].

    Returns:
        Tokens; 0 if no length qualifies.
    """
    best = 0
    for length, qualifies in sorted(entries):
        if qualifies:
            best = length
        elif length >= trained_length:
            break
    return best


class Reached(NamedTuple):
    """How far verdicts at single lengths go.

    Attributes:
        certain: Tokens up to which every length is a yes.
        possible: The same, where what is not resolved counts as a yes.
        at: The verdicts, by length.
    """

    certain: int | None
    possible: int | None
    at: list[LengthVerdict]


def reached(verdicts: Sequence[LengthVerdict], trained_length: int) -> Reached:
    """Returns how far verdicts go: :func:`qualified_length` of those that are a yes, and of those that may be one."""
    if not verdicts:
        return Reached(None, None, [])
    certain, possible = (
        qualified_length(((one.length, one.outcome in outcomes) for one in verdicts), trained_length)
        for outcomes in (("yes",), ("yes", "not resolved"))
    )
    return Reached(certain, possible, sorted(verdicts, key=lambda one: one.length))


def models_verdicts(
    points: Sequence[PerplexityPoint],
    baseline: PerplexityPoint | None,
    tolerance: float,
    clusters: Sequence[int] | None = None,
) -> list[LengthVerdict]:
    """Returns at which contexts the same targets are predicted no worse than by the baseline.

    A yes has the whole 95 % interval of the paired difference by document at or below ``tolerance``, a no above it.

    Args:
        points: Protocol ``tail`` points of the method.
        baseline: The unscaled model's ``tail`` point at its trained length.
        tolerance: Accepted difference [nats a token].
        clusters: The document of each unit; a document of its own by default.
    """
    found = []
    for point in points:
        difference = None if baseline is None else loss_difference("tail", point, baseline, clusters)
        if difference is not None:
            found.append(_judged(difference, tolerance))
    return found


def _judged(difference: Difference, tolerance: float) -> LengthVerdict:
    low, high, value, units = difference.ci_low, difference.ci_high, difference.value, difference.units
    outcome: Outcome = "not resolved"
    needed = None
    if low is not None and high is not None:
        outcome = "yes" if high <= tolerance else "no" if low > tolerance else "not resolved"
        if outcome == "not resolved" and value != tolerance:
            # Student's quantile tends to the normal one as documents are added.
            width = (high - value if value < tolerance else value - low) * Z_95 / student_95(units - 1)
            needed = max(units + 1, math.ceil(units * (width / (tolerance - value)) ** 2))
    return LengthVerdict(difference.length, outcome, value, low, high, units, _if_possible(needed))


def uses_verdicts(scores: Iterable[ScoredLength], wanted: float) -> list[LengthVerdict]:
    """Returns at which lengths what was hidden in a text is found: the whole interval of the score is at or above ``wanted``.

    Args:
        scores: Score by length, in any order.
        wanted: The least score that counts as used.
    """
    found = []
    for length, score, trials, low, high in scores:
        outcome: Outcome = "yes" if low >= wanted else "no" if high < wanted else "not resolved"
        needed = None
        if outcome == "not resolved" and score != wanted:
            # Where the Wilson interval of this score ends at the wanted one.
            needed = max(trials + 1, math.ceil(Z_95**2 * wanted * (1 - wanted) / (score - wanted) ** 2))
        found.append(LengthVerdict(length, outcome, score, low, high, trials, _if_possible(needed)))
    return found


def _if_possible(needed: int | None) -> int | None:
    return None if needed is None or needed > MOST_UNITS else needed


def longest_without_a_miss(values: Iterable[tuple[int, float]], wanted: float) -> int:
    """Returns the longest length with at least ``wanted`` at it and at every shorter one; 0 if the shortest fails.

    The effective context of Position Interpolation (arXiv 2306.15595) and YaRN (2309.00071).

    Args:
        values: Length [tokens] and accuracy, in any order.
        wanted: The least that counts.
    """
    return qualified_length(((length, value >= wanted) for length, value in values), trained_length=0)


def short_lengths(
    points: Sequence[PerplexityPoint], baseline: Sequence[PerplexityPoint], trained_length: int
) -> list[int]:
    """Returns the lengths up to the trained one at which both have a perplexity [tokens]."""
    theirs = {point.context_length for point in baseline if point.perplexity is not None}
    lengths = [point.context_length for point in points if point.perplexity is not None]
    return [length for length in lengths if length <= trained_length and length in theirs]


def short_delta(
    points: Sequence[PerplexityPoint],
    baseline: Sequence[PerplexityPoint],
    trained_length: int,
    clusters: Sequence[int] | None = None,
) -> Difference | None:
    """Returns the worst relative perplexity change against the baseline at the :func:`short_lengths`, with its interval.

    Args:
        points: The method's.
        baseline: The unscaled model's.
        trained_length: L [tokens].
        clusters: The document of each unit; a document of its own by default.
    """
    theirs = {point.context_length: point for point in baseline}
    short = [point for point in points if point.context_length <= trained_length and point.context_length in theirs]
    differences = [loss_difference("short_delta", point, theirs[point.context_length], clusters) for point in short]
    worst = max((each for each in differences if each is not None), key=lambda each: each.value, default=None)
    if worst is None:
        return None
    low, high = worst.ci_low, worst.ci_high
    return replace(
        worst,
        value=math.expm1(worst.value),
        ci_low=None if low is None else math.expm1(low),
        ci_high=None if high is None else math.expm1(high),
    )


def largest_rise(perplexity: Mapping[int, float], before: Mapping[int, float]) -> float | None:
    """Returns the largest relative rise of perplexity over what it was before, of the lengths that both have."""
    return max((perplexity[length] / before[length] - 1 for length in perplexity if length in before), default=None)


def first_open(verdicts: Sequence[LengthVerdict], certain: int, trained_length: int) -> LengthVerdict:
    """Returns the length that decides whether more is reached: the shortest that is not resolved, from the trained one on.

    Args:
        verdicts: By length, of which one past the certain ones is not resolved.
        certain: Tokens that are certain.
        trained_length: L; below it only where nothing from it on is open [tokens].
    """
    still = [one for one in verdicts if one.length > certain and one.outcome == "not resolved"]
    return next((one for one in still if one.length >= trained_length), still[-1])
