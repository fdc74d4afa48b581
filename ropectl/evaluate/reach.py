"""Verdicts over records: how far a method models text, how far it uses it, and what it costs up to L."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ropectl.evaluate.statistics import bootstrap_upper
from ropectl.records import MIN_TRIALS, NO_CHANGE, MethodRow, PasskeyLength, PerplexityPoint, Pick


def models_length(points: Sequence[PerplexityPoint], baseline: PerplexityPoint | None, tolerance: float) -> int | None:
    """Returns the longest context in which the same targets are predicted no worse than by the baseline.

    A length qualifies if the upper end of the bootstrap 95 % interval of the mean difference by
    document is at most ``tolerance``.

    Args:
        points: Protocol ``tail`` points of the method.
        baseline: The unscaled model's ``tail`` point at its trained length.
        tolerance: Accepted difference [nats a token].

    Returns:
        Tokens; 0 if no length qualifies, None if it was not measured.
    """
    measured = [point for point in points if point.perplexity is not None]
    if baseline is None or baseline.perplexity is None or not measured:
        return None
    num_targets = baseline.num_tokens // baseline.num_documents
    best = 0
    for point in measured:
        pairs = zip(point.document_nll_sums, baseline.document_nll_sums, strict=True)
        differences = [(ours - theirs) / num_targets for ours, theirs in pairs]
        if bootstrap_upper(differences) <= tolerance:
            best = max(best, point.context_length)
    return best


def reached(values: Iterable[tuple[int, float]], wanted: float) -> int:
    """Returns the longest length with at least ``wanted`` at it and at every shorter one; 0 if the shortest fails.

    The effective context of Position Interpolation (arXiv 2306.15595) and YaRN (2309.00071).

    Args:
        values: Length [tokens] and accuracy or score, in any order.
        wanted: The least that counts.
    """
    best = 0
    for length, value in sorted(values):
        if value < wanted:
            break
        best = length
    return best


def uses_length(lengths: Sequence[PasskeyLength], min_accuracy: float) -> int | None:
    """Returns the longest length with at least ``min_accuracy`` at it and at every shorter one.

    Returns:
        Tokens; 0 if the shortest fails already, None if not measured or on fewer than 20 trials a length.
    """
    if not lengths or any(entry.trials < MIN_TRIALS for entry in lengths):
        return None
    return reached(((entry.length, entry.accuracy) for entry in lengths), min_accuracy)


def short_delta(
    points: Sequence[PerplexityPoint], baseline: Sequence[PerplexityPoint], trained_length: int
) -> float | None:
    """Returns the worst relative perplexity change against the baseline at lengths up to the trained one."""
    ours, theirs = (
        {
            p.context_length: p.perplexity
            for p in some
            if p.perplexity is not None and p.context_length <= trained_length
        }
        for some in (points, baseline)
    )
    return largest_rise(ours, theirs)


def largest_rise(perplexity: Mapping[int, float], before: Mapping[int, float]) -> float | None:
    """Returns the largest relative rise of perplexity over what it was before, of the lengths that both have."""
    return max((perplexity[length] / before[length] - 1 for length in perplexity if length in before), default=None)


def pick_method(rows: Sequence[MethodRow]) -> Pick | None:
    """Returns the row with the longest ``uses``, then ``models``, then the smallest ``short_delta``, and why.

    None where nothing was measured that could decide.
    """
    candidates = [
        row for row in rows if not row.errors and (row.reach.uses is not None or row.reach.models is not None)
    ]
    if not candidates:
        return None
    best = min(
        candidates,
        key=lambda row: (
            -(row.reach.uses or 0),
            -(row.reach.models or 0),
            row.short_delta if row.short_delta is not None else 0.0,
        ),
    )
    reasons = []
    if best.reach.uses is not None:
        reasons.append(f"uses {_tokens(best.reach.uses)}: {_rank('uses', best, candidates)}")
    if best.reach.models is not None:
        reasons.append(f"models {_tokens(best.reach.models)}: {_rank('models', best, candidates)}")
    if best.short_delta is not None:
        if abs(best.short_delta) < NO_CHANGE:
            change = "does not change"
        elif best.short_delta < 0:
            change = f"falls by {-best.short_delta:.1%} or more"
        else:
            change = f"rises by {best.short_delta:.1%} at worst"
        reasons.append(f"perplexity up to the trained length {change}")
    return Pick(best.model, best.method, reasons, best.training.id if best.training else None)


def _tokens(length: int) -> str:
    return f"{length} tokens" if length else "no evaluated length"


def _rank(sense: str, best: MethodRow, rows: Sequence[MethodRow]) -> str:
    values = [getattr(row.reach, sense) or 0 for row in rows]
    own = getattr(best.reach, sense) or 0
    if own < max(values):
        return f"{max(values)} is the longest"
    ties = values.count(own) - 1
    return "the longest" if not ties else f"the longest, shared with {ties} other{'s' if ties > 1 else ''}"
