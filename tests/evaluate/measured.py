"""Short ways to measure perplexity in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.cost import ForwardCost
from ropectl.evaluate.perplexity.find_protocol import find_protocol
from ropectl.evaluate.perplexity.runner import measure_perplexity
from ropectl.evaluate.perplexity.windows import Pass, PassOptions, PerplexityRequest, work_of
from ropectl.records import PerplexityPoint
from ropectl.reporter import Reporter
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.timing.operations import NOTHING, Cost


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


def tokens_of(passes: Sequence[Pass], documents: DocumentSet) -> int:
    """Returns the tokens that go through the model."""
    return work_of(passes, documents, ForwardCost(layers=1, head=0, attention=0)).tokens


class CountingReporter(Reporter):
    """Counts the tokens and operations that were announced, and those that went through the model."""

    total, done = 0.0, 0
    cost, spent = NOTHING, NOTHING

    def start(self, what: str, total: float = 0.0, unit: str = "tokens", cost: Cost | None = None) -> None:
        self.total, self.cost = total, cost or NOTHING

    def advance(self, amount: int, cost: Cost | None = None) -> None:
        self.done += amount
        self.spent += cost or NOTHING
