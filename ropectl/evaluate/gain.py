"""What a longer context gives: the loss of the same tokens given N tokens against given the trained length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ropectl.evaluate.statistics import paired_interval
from ropectl.records import PerplexityPoint


def with_gain(points: Sequence[PerplexityPoint], trained_length: int) -> list[PerplexityPoint]:
    """Returns points with the gain over the trained length, where that is among them.

    Args:
        points: Points of the same targets under one method.
        trained_length: L [tokens].
    """
    reference = next((p for p in points if p.context_length == trained_length and p.perplexity is not None), None)
    return [
        point if reference is None or point.perplexity is None else _with_gain(point, reference) for point in points
    ]


def _with_gain(point: PerplexityPoint, reference: PerplexityPoint) -> PerplexityPoint:
    counts = point.document_num_tokens
    assert counts == reference.document_num_tokens, "the same targets"
    sums = zip(reference.document_nll_sums, point.document_nll_sums, counts, strict=True)
    differences = [(theirs - ours) / count for theirs, ours, count in sums]
    low, high = paired_interval(differences, counts) if len(differences) > 1 else (None, None)
    return replace(
        point,
        gain_over_trained=(reference.nll_sum - point.nll_sum) / point.num_tokens,
        gain_ci_low=low,
        gain_ci_high=high,
    )
