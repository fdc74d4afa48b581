"""Windows of documents, in passes: all that goes through the model to measure perplexity, planned without torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.cost import ForwardCost, Progress, no_progress
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.timing.operations import NOTHING, Cost


@dataclass(frozen=True)
class PerplexityRequest:
    """A measurement of perplexity.

    Attributes:
        method: The method in force.
        geometry: The geometry that the model was trained with.
        documents: The scored documents.
        lengths: Context lengths [tokens].
        stride: Tokens from one window to the next, for protocols whose windows move.
        num_targets: K of protocol ``tail`` [tokens].
        short_context: K of protocol ``key-tokens``; None chooses it [tokens].
        keys: Key tokens that another model chose, by length: (documents, candidates) bool tensors; None lets the
            measured model choose.
        measured_trained_length: L of the measured model if another one is run; None for its own [tokens].
        capacity: The length that the method is made for: longer contexts are marked [tokens]; None marks nothing.
    """

    method: ScalingMethod
    geometry: RopeGeometry
    documents: DocumentSet
    lengths: Sequence[int]
    stride: int | None = None
    num_targets: int | None = None
    short_context: int | None = None
    keys: dict[int, Any] | None = None
    measured_trained_length: int | None = None
    capacity: int | None = None

    @property
    def trained_length(self) -> int:
        """L of the measured model [tokens]."""
        return self.measured_trained_length or self.geometry.original_max_position_embeddings

    @property
    def possible(self) -> list[int]:
        """Lengths that the documents have."""
        return [length for length in self.lengths if length <= self.documents.length]

    def beyond(self, length: int) -> bool:
        """Returns whether a context is past the length that the method is made for."""
        return self.capacity is not None and length > self.capacity


@dataclass(frozen=True)
class PassOptions:
    """The way passes are run, which changes no number beyond rounding.

    Attributes:
        layers: The layer type that is scaled, where each has its own rotary table.
        prefill_chunk: Tokens per forward pass; None for whole windows.
        batch_size: Windows per forward pass.
        progress: Called after each forward pass.
    """

    layers: str | None = None
    prefill_chunk: int | None = None
    batch_size: int = 1
    progress: Progress = no_progress

    def pieces(self, tokens: int) -> int:
        """Returns how many passes a window of so many tokens is cut into."""
        return 1 if self.prefill_chunk is None else -(-tokens // self.prefill_chunk)


@dataclass(frozen=True)
class Window:
    """Consecutive tokens of a document, after BOS if every window begins with it.

    Attributes:
        document: Index of the document.
        start: First token of the document in the window.
        stop: The token after the last.
        num_scored: Tokens scored, at the end of the window.
    """

    document: int
    start: int
    stop: int
    num_scored: int

    def num_tokens(self, documents: DocumentSet) -> int:
        """Returns the tokens that go through the model."""
        return self.stop - self.start + self._bos_is_put_first(documents)

    def input_ids(self, documents: DocumentSet) -> list[int]:
        """Returns the tokens that go through the model, with BOS once at the beginning."""
        ids = documents.documents[self.document].input_ids[self.start : self.stop]
        if self._bos_is_put_first(documents):
            assert documents.bos_token_id is not None
            return [documents.bos_token_id, *ids]
        return ids

    def _bos_is_put_first(self, documents: DocumentSet) -> bool:
        return documents.bos_token_id is not None and self.start > 0


@dataclass(frozen=True)
class Pass:
    """Windows that are measured under the same frequencies, and the lengths that they give numbers for.

    Attributes:
        seq_len: The length that a length-dependent method is frozen at [tokens].
        lengths: Context lengths read off the pass: a target counts for each that is longer than its position.
        windows: Yields the windows, one after the other; they are never all held.
    """

    seq_len: int
    lengths: tuple[int, ...]
    windows: Callable[[], Iterator[Window]]


@dataclass(frozen=True)
class WindowWork:
    """What it takes to run windows through a model.

    Attributes:
        tokens: Tokens of all windows.
        longest: Tokens of the longest.
        cost: The passes and their operations.
    """

    tokens: int
    longest: int
    cost: Cost


def work_of(
    passes: Sequence[Pass], documents: DocumentSet, forward: ForwardCost, options: PassOptions | None = None
) -> WindowWork:
    """Returns what it takes to run some passes.

    Args:
        passes: The passes.
        documents: The documents of their windows.
        forward: The cost of the model's passes.
        options: How they are run.
    """
    options, work = options or PassOptions(), WindowWork(0, 0, NOTHING)
    for one in passes:
        shapes = Counter((window.num_tokens(documents), window.num_scored) for window in one.windows())
        for (tokens, scored), count in shapes.items():
            num_passes = -(-count // options.batch_size) * options.pieces(tokens)
            cost = forward.of_sums(num_passes, count * tokens, count * tokens**2, count * scored)
            work = WindowWork(work.tokens + count * tokens, max(work.longest, tokens), work.cost + cost)
    return work
