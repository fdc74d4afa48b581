"""Losses by position in the window, in bins that are about evenly spaced in the logarithm."""

from __future__ import annotations

import torch
from torch import Tensor

from ropectl.records import PositionBin


def bin_edges(window: int) -> list[int]:
    """Returns where bins begin: 1, 2, 3, 4, 6, 8, 12, 16, ... (two an octave), and the window as the last end.

    Position 0 has no prediction and belongs to no bin.
    """
    edges: list[int] = []
    octave = 1
    while octave < window:
        edges.extend(edge for edge in (octave, octave + octave // 2) if edge < window and edge not in edges)
        octave *= 2
    return [*edges, window]


class PositionSums:
    """Sums of losses by position.

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
