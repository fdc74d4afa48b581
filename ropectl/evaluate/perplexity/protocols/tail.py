"""Protocol ``tail``: the same last K tokens of each document are scored, given the N tokens that end with them.

Only N varies, so a difference is what the longer context, or the longer positions, did to the same text. One pass
per length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ropectl.evaluate.judging.paired import loss_difference
from ropectl.evaluate.perplexity.protocol import Losses, PerplexityProtocol
from ropectl.evaluate.perplexity.windows import PerplexityRequest, Window
from ropectl.records import PerplexityPoint


class Tail(PerplexityProtocol):
    """The same last tokens of each document, given the N that end with them."""

    name = "tail"
    summary = "the same last tokens of each document, given the N that end with them"
    takes = frozenset({"tolerance"})
    same_targets = True
    judges_models = True

    def completed(self, request: PerplexityRequest) -> PerplexityRequest:
        """Returns the request with K."""
        if request.num_targets is not None:
            return request
        return replace(request, num_targets=num_tail_targets(request.lengths))

    def windows(self, request: PerplexityRequest, length: int) -> Iterator[Window]:
        """Yields one window a document, which ends with it."""
        assert request.num_targets is not None
        has_bos = request.documents.bos_token_id is not None
        for index, document in enumerate(request.documents.documents):
            stop = len(document.input_ids)
            start = 0 if length == stop else stop - length + has_bos
            yield Window(index, start, stop, request.num_targets)

    def measure(self, request: PerplexityRequest, losses: Losses) -> list[PerplexityPoint]:
        """Returns the points, each with what its context gains over the trained length."""
        return with_gain(super().measure(request, losses), request.trained_length, request.documents.clusters)


def num_tail_targets(lengths: Sequence[int]) -> int:
    """Returns K: half the shortest context, so that every target has at least as much before it [tokens]."""
    return max(1, min(lengths) // 2)


def with_gain(
    points: Sequence[PerplexityPoint], trained_length: int, clusters: Sequence[int] | None = None
) -> list[PerplexityPoint]:
    """Returns points with the gain of their context: how much lower the loss is than given the trained length.

    Args:
        points: Points of the same targets under one method.
        trained_length: L [tokens]; without a point there, nothing is gained.
        clusters: The document of each unit; a document of its own by default.
    """
    reference = next((p for p in points if p.context_length == trained_length and p.perplexity is not None), None)
    gained = []
    for point in points:
        found = None if reference is None else loss_difference("tail", reference, point, clusters)
        gained.append(
            point
            if found is None
            else replace(point, gain_over_trained=found.value, gain_ci_low=found.ci_low, gain_ci_high=found.ci_high)
        )
    return gained
