"""The base of perplexity protocols: which windows go through the model, and which of their tokens are scored.

A protocol plans without torch and runs nothing itself: :mod:`ropectl.evaluate.perplexity.runner` hands it the losses
of its windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ropectl.errors import ConfigError
from ropectl.evaluate.perplexity.windows import Pass, PerplexityRequest, Window
from ropectl.records import PerplexityPoint

if TYPE_CHECKING:
    from torch import Tensor

#: Runs a pass: yields each of its windows, in any order, with the losses of its scored tokens, (T,) float64 [nats].
Losses = Callable[[Pass], Iterable[tuple[Window, "Tensor"]]]

#: Tokens from one window to the next by default; half the shortest length if that is less.
DEFAULT_STRIDE = 256


class PerplexityProtocol(ABC):
    """A way to turn documents into a number for each context length.

    Attributes:
        name: Its name for ``--protocol``.
        summary: One line for people.
        takes: Settings other than lengths that have a meaning here.
        by_position: Whether losses are also given by position: every window begins where its document does.
        has_baseline: Whether the unscaled model scores the same targets, so that both may be compared.
        same_targets: Whether every length scores the same tokens.
        judges_models: Whether its points say up to which length a method models text.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    takes: ClassVar[frozenset[str]] = frozenset()
    by_position: ClassVar[bool] = False
    has_baseline: ClassVar[bool] = True
    same_targets: ClassVar[bool] = False
    judges_models: ClassVar[bool] = False

    @abstractmethod
    def windows(self, request: PerplexityRequest, length: int) -> Iterator[Window]:
        """Yields the windows of all documents at one length, one after the other.

        Args:
            request: The measurement.
            length: N [tokens].
        """

    def passes(self, request: PerplexityRequest) -> list[Pass]:
        """Returns the passes for the lengths that documents have: by default one for each."""
        return [Pass(length, (length,), partial(self.windows, request, length)) for length in request.possible]

    def completed(self, request: PerplexityRequest) -> PerplexityRequest:
        """Returns the request completed with this protocol's defaults, without looking at documents.

        Raises:
            ConfigError: If it cannot be measured.
        """
        return request

    def measure(self, request: PerplexityRequest, losses: Losses) -> list[PerplexityPoint]:
        """Returns one point per length, in the order asked for; every number is independent of that order.

        Args:
            request: The measurement.
            losses: Runs a pass.

        Raises:
            MeasurementError: If the model computes no usable probabilities.
        """
        from ropectl.evaluate.perplexity.tally import Tally, missing_point  # torch loads here

        tallies: dict[int, Tally] = {}
        for one in self.passes(request):
            for length in one.lengths:  # by position only at the longest: it has the positions of all
                tallies[length] = Tally(length, request.documents, self.by_position and length == max(one.lengths))
            for window, nll in losses(one):
                for length in one.lengths:
                    tallies[length].add(window, nll)
        points = {length: tally.point(request.beyond(length)) for length, tally in tallies.items()}
        return [points.get(n) or missing_point(n, request.beyond(n)) for n in request.lengths]


class MovingWindows(PerplexityProtocol):
    """A protocol whose windows move through each document, ``stride`` tokens at a time."""

    takes = frozenset({"stride", "document_tokens"})

    def completed(self, request: PerplexityRequest) -> PerplexityRequest:
        """Returns the request with a stride, such that no token falls between two windows and every scored one has context.

        Raises:
            ConfigError: If the stride is not less than every length.
        """
        shortest = min(request.lengths)
        if request.stride is None:
            return replace(request, stride=min(DEFAULT_STRIDE, max(1, shortest // 2)))
        if request.stride >= shortest:
            raise ConfigError(
                f"stride = {request.stride} is not possible at length {shortest}: a window there has at most "
                f"{shortest - 1} tokens to score.",
                f"Use --stride {shortest - 1} or less, or longer lengths, at least {request.stride + 1}.",
            )
        return request
