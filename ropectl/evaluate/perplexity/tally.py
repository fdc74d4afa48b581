"""Sums of losses by document and by position, and the record made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ropectl.data.tokens import DocumentSet
from ropectl.errors import MeasurementError
from ropectl.evaluate.judging.statistics import MAX_MEAN_NLL, perplexity_interval
from ropectl.evaluate.perplexity.windows import Window
from ropectl.records import PerplexityPoint, PositionBin


def bin_edges(window: int) -> list[int]:
    """Returns where bins of positions begin, about evenly spaced in the logarithm: 1, 2, 3, 4, 6, 8, 12, 16, ... (two an octave), and the window as the last end.

    Position 0 has no prediction and belongs to no bin.
    """
    edges: list[int] = []
    octave = 1
    while octave < window:
        edges.extend(edge for edge in (octave, octave + octave // 2) if edge < window and edge not in edges)
        octave *= 2
    return [*edges, window]


class PositionSums:
    """Sums of losses by position in the window.

    Args:
        window: Longest window [tokens].
    """

    def __init__(self, window: int) -> None:
        self._edges = bin_edges(window)
        self._bins = torch.bucketize(torch.arange(1, window), torch.tensor(self._edges[1:]), right=True)
        self._sums = torch.zeros(len(self._edges) - 1, dtype=torch.float64)
        self._counts = torch.zeros(len(self._edges) - 1, dtype=torch.int64)

    def add(self, first: int, nll: Tensor) -> None:
        """Adds the losses of consecutive positions.

        Args:
            first: Position of the first, at least 1.
            nll: (T,) float64 [nats].
        """
        bins = self._bins[first - 1 : first - 1 + len(nll)]
        self._sums.index_add_(0, bins, nll)
        self._counts.index_add_(0, bins, torch.ones_like(bins))

    def bins(self) -> list[PositionBin]:
        """Returns the bins that hold targets."""
        rows = zip(self._edges, self._edges[1:], self._sums.tolist(), self._counts.tolist(), strict=False)
        return [PositionBin(*row) for row in rows if row[3]]


class Tally:
    """The losses at one context length.

    Args:
        length: N [tokens].
        documents: The scored documents.
        by_position: Whether losses are also summed by position in the window.
    """

    def __init__(self, length: int, documents: DocumentSet, by_position: bool = False) -> None:
        self._length = length
        self._documents = documents
        count = len(documents.documents)
        self._nll: list[list[float]] = [[] for _ in range(count)]
        self._num_tokens = [0] * count
        self._num_bytes: int | None = 0
        self._window_means: list[float] = []
        self._positions = PositionSums(length) if by_position else None

    def add(self, window: Window, nll: Tensor) -> None:
        """Adds the losses of a window at positions below the length.

        Args:
            window: The window.
            nll: (T,) float64, of the last T tokens of the window [nats].
        """
        first = window.num_tokens(self._documents) - window.num_scored
        nll = nll[: max(0, self._length - first)]
        if not len(nll):
            return
        total = float(nll.sum())
        self._nll[window.document].append(total)
        self._num_tokens[window.document] += len(nll)
        self._window_means.append(total / len(nll))
        if self._num_bytes is not None:
            count = self._documents.documents[window.document].byte_count
            start = window.stop - window.num_scored
            size = count(start, start + len(nll)) if count is not None else None
            self._num_bytes = None if size is None else self._num_bytes + size
        if self._positions is not None:
            self._positions.add(first, nll)

    def point(self, beyond: bool) -> PerplexityPoint:
        """Returns the record.

        Args:
            beyond: Whether it is past the length that the method is made for.

        Raises:
            MeasurementError: If the model computes no usable probabilities.
        """
        sums = [math.fsum(parts) for parts in self._nll]
        point = summarize(self._length, sums, self._num_tokens, beyond, self._documents.clusters)
        return replace(
            point,
            num_windows=len(self._window_means),
            window_mean_perplexity=math.exp(min(math.fsum(self._window_means) / len(self._window_means), MAX_MEAN_NLL)),
            positions=self._positions.bins() if self._positions is not None else [],
            **self._bytes(point.nll_sum),
        )

    def _bytes(self, nll_sum: float) -> dict[str, Any]:
        if not self._num_bytes:
            return {}
        return {"num_bytes": self._num_bytes, "bits_per_byte": nll_sum / math.log(2) / self._num_bytes}


def summarize(
    length: int, sums: list[float], counts: list[int], beyond: bool, clusters: Sequence[int] | None = None
) -> PerplexityPoint:
    """Returns the record of losses summed by document; without a perplexity if nothing was scored.

    Args:
        length: N [tokens].
        sums: Summed losses by document [nats].
        counts: Scored tokens by document.
        beyond: Whether it is past the length that the method is made for.
        clusters: The document of each unit; a document of its own by default.

    Raises:
        MeasurementError: If the model computes no usable probabilities.
    """
    nll_sum, num_tokens = math.fsum(sums), sum(counts)
    mean = nll_sum / num_tokens if num_tokens else 0.0
    if not mean < MAX_MEAN_NLL:
        raise MeasurementError(
            f"The mean loss at {length} tokens is {mean:g} nats: the model computes no usable probabilities there.",
            "If the dtype is float16, its range may be too small: --dtype bfloat16 or float32.",
        )
    low, high = perplexity_interval(sums, counts, clusters) or (None, None)
    return PerplexityPoint(
        context_length=length,
        perplexity=math.exp(mean) if num_tokens else None,
        nll_sum=nll_sum,
        num_tokens=num_tokens,
        num_documents=len(sums),
        document_nll_sums=sums,
        beyond_capacity=beyond,
        document_num_tokens=list(counts),
        ci_low=low,
        ci_high=high,
    )


def missing_point(length: int, beyond: bool) -> PerplexityPoint:
    """Returns the record of a length that no document has."""
    return PerplexityPoint(context_length=length, beyond_capacity=beyond)
