"""Short ways to measure perplexity in a test."""

from __future__ import annotations

from typing import Any

from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.perplexity.find_protocol import find_protocol
from ropectl.evaluate.perplexity.runner import measure_perplexity
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest
from ropectl.records import PerplexityPoint
from ropectl.reporter import Reporter
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod


def measured(
    model: Any, protocol: str, request: PerplexityRequest, options: PassOptions | None = None
) -> list[PerplexityPoint]:
    """Returns the points of a request under a protocol."""
    return measure_perplexity(model, find_protocol(protocol), request, options)


def prefix_points(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    documents: DocumentSet,
    lengths: list[int],
    **options: Any,
) -> list[PerplexityPoint]:
    """Returns the points of protocol ``prefix``."""
    return measured(model, "prefix", PerplexityRequest(method, geometry, documents, lengths), PassOptions(**options))


def tail_points(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    documents: DocumentSet,
    lengths: list[int],
    num_targets: int,
    **options: Any,
) -> list[PerplexityPoint]:
    """Returns the points of protocol ``tail`` for the last ``num_targets`` tokens."""
    request = PerplexityRequest(method, geometry, documents, lengths, num_targets=num_targets)
    return measured(model, "tail", request, PassOptions(**options))


class CountingReporter(Reporter):
    """Counts the tokens that were announced, and those that went through the model."""

    total, done = 0.0, 0

    def start(self, what: str, total: float = 0.0, unit: str = "tokens") -> None:
        self.total = total

    def advance(self, tokens: int) -> None:
        self.done += tokens
