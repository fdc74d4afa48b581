"""Verdicts on measurements: how far a method models text, how far it uses it, and what it costs up to L."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ropectl.evaluate.statistics import paired_interval
from ropectl.records import FEW_DOCUMENTS, MIN_TRIALS, NO_CHANGE, PerplexityPoint


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


def models_length(
    points: Sequence[PerplexityPoint], baseline: PerplexityPoint | None, tolerance: float, trained_length: int
) -> int | None:
    """Returns the context up to which the same targets are predicted no worse than by the baseline.

    A length qualifies if the upper end of the bootstrap 95 % interval of the mean difference by
    document is at most ``tolerance``; :func:`qualified_length` makes one length of that.

    Args:
        points: Protocol ``tail`` points of the method.
        baseline: The unscaled model's ``tail`` point at its trained length.
        tolerance: Accepted difference [nats a token].
        trained_length: L [tokens].

    Returns:
        Tokens; 0 if no length qualifies, None if it was not measured.
    """
    measured = [point for point in points if point.perplexity is not None]
    if baseline is None or baseline.perplexity is None or not measured:
        return None
    num_targets = baseline.num_tokens // baseline.num_documents
    entries = []
    for point in measured:
        pairs = zip(point.document_nll_sums, baseline.document_nll_sums, strict=True)
        differences = [(ours - theirs) / num_targets for ours, theirs in pairs]
        entries.append((point.context_length, paired_interval(differences)[1] <= tolerance))
    return qualified_length(entries, trained_length)


def uses_length(entries: Iterable[tuple[int, float, int]], wanted: float, trained_length: int) -> int | None:
    """Returns the length up to which what was hidden in a text is found: :func:`qualified_length` of the scores.

    Args:
        entries: Length [tokens], accuracy or score in [0, 1], and number of trials, in any order.
        wanted: The least score that counts as used.
        trained_length: L [tokens].

    Returns:
        Tokens; 0 if no length qualifies, None if not measured or on fewer than 20 trials a length.
    """
    known = list(entries)
    if not known or any(trials < MIN_TRIALS for _, _, trials in known):
        return None
    return qualified_length(((length, score >= wanted) for length, score, _ in known), trained_length)


def longest_without_a_miss(values: Iterable[tuple[int, float]], wanted: float) -> int:
    """Returns the longest length with at least ``wanted`` at it and at every shorter one; 0 if the shortest fails.

    The effective context of Position Interpolation (arXiv 2306.15595) and YaRN (2309.00071).

    Args:
        values: Length [tokens] and accuracy, in any order.
        wanted: The least that counts.
    """
    return qualified_length(((length, value >= wanted) for length, value in values), trained_length=0)


def short_delta(
    points: Sequence[PerplexityPoint], baseline: Sequence[PerplexityPoint], trained_length: int
) -> float | None:
    """Returns the worst relative perplexity change against the baseline at lengths up to the trained one."""
    ours, theirs = (
        {
            point.context_length: point.perplexity
            for point in some
            if point.perplexity is not None and point.context_length <= trained_length
        }
        for some in (points, baseline)
    )
    return largest_rise(ours, theirs)


def largest_rise(perplexity: Mapping[int, float], before: Mapping[int, float]) -> float | None:
    """Returns the largest relative rise of perplexity over what it was before, of the lengths that both have."""
    return max((perplexity[length] / before[length] - 1 for length in perplexity if length in before), default=None)


def perplexity_verdict(
    models: int | None,
    baseline: PerplexityPoint | None,
    delta: float | None,
    trained_length: int,
    tolerance: float,
) -> list[str]:
    """Returns the verdict of perplexity in sentences: how far the method reaches, and what it costs.

    Args:
        models: Context up to which text is modelled [tokens]; None where that was not judged.
        baseline: The unscaled model's point at its trained length, against which it was judged.
        delta: Worst relative change up to the trained length; None if not measured.
        trained_length: L [tokens].
        tolerance: Accepted rise of the loss [nats a token].
    """
    sentences = []
    if models is not None and baseline is not None:
        sentences.append(_models_sentence(models, trained_length, tolerance, baseline.num_documents))
    if delta is not None:
        change = f"{delta:+.1%}" if abs(delta) >= NO_CHANGE else "no change"
        sentences.append(
            f"Perplexity up to the trained length ({trained_length} tokens) against the unscaled model: {change} at worst."
        )
    return sentences


def _models_sentence(models: int, trained: int, tolerance: float, num_documents: int) -> str:
    few = f"; few documents, at least {FEW_DOCUMENTS} wanted" if num_documents < FEW_DOCUMENTS else ""
    basis = f"(within {tolerance:g} nats a token, 95 % interval over {num_documents} documents{few})"
    reference = f"the unscaled model given {trained} {basis}."
    if models:
        return f"models up to {models} tokens: given so many, the same text is predicted no worse than by {reference}"
    return f"models no evaluated length: the same text is predicted worse than by {reference}"


def limit_messages(points: Sequence[Mapping[str, Any]], limit: float) -> list[str]:
    """Returns a sentence for each length whose perplexity is above a limit, or was not measured.

    Args:
        points: The points of a record.
        limit: Largest accepted perplexity.
    """
    messages = []
    for point in points:
        length, value = point["context_length"], point["perplexity"]
        if value is None:
            messages.append(
                f"No perplexity was measured at {length} tokens: --fail-above {limit:g} cannot be kept there."
            )
        elif value > limit:
            messages.append(f"The perplexity at {length} tokens is {value:.6g}, above {limit:g} (--fail-above).")
    return messages
