"""Perplexity over context lengths: what runs the passes of a protocol and sums the losses.

Which windows there are and what is scored in them is the protocol's plan (:mod:`ropectl.evaluate.protocols`). Windows
are made one after the other, so no more is held than a batch of them and the sums.

Legend: B windows of a batch, T scored tokens of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.forward import Forward
from ropectl.evaluate.protocols.prefix import PREFIX
from ropectl.evaluate.protocols.protocol import Options, Pass, Request, Window
from ropectl.evaluate.protocols.tail import TAIL, num_tail_targets
from ropectl.evaluate.tally import Tally, missing_point
from ropectl.hf.model.patch import apply_rope
from ropectl.records import PerplexityPoint
from ropectl.reporter import Progress, no_progress
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

__all__ = [
    "measure_passes",
    "measure_perplexity",
    "measure_tail",
    "num_tail_targets",
    "scored_windows",
]


def measure_passes(
    model: Any, request: Request, passes: Sequence[Pass], options: Options, by_position: bool = False
) -> list[PerplexityPoint]:
    """Returns one point per length, in the order asked for; every number is independent of that order.

    Args:
        model: A causal language model of transformers.
        request: What is measured; its method is applied for each pass, and undone after it.
        passes: The protocol's plan.
        options: How passes are run.
        by_position: Whether the longest length of each pass tells its losses by position.
    """
    tallies: dict[int, Tally] = {}
    for one in passes:
        for length in one.lengths:
            bins = by_position and length == max(one.lengths)
            tallies[length] = Tally(length, request.documents, bins)
        for window, nll in scored_windows(model, request, one, options):
            for length in one.lengths:
                tallies[length].add(window, nll)
    points = {length: tally.point(options.beyond(length)) for length, tally in tallies.items()}
    return [points.get(n) or missing_point(n, options.beyond(n)) for n in request.lengths]


def scored_windows(model: Any, request: Request, one: Pass, options: Options) -> Iterator[tuple[Window, Tensor]]:
    """Yields every window of a pass with the losses of its scored tokens, (T,) float64 [nats]; not in order."""
    with apply_rope(model, request.method, geometry=request.geometry, seq_len=one.seq_len, layers=options.layers):
        forward = Forward.of(model, options.prefill_chunk)
        for batch in _batches(one.windows(), request.documents, options.batch_size):
            ids = torch.tensor([window.input_ids(request.documents) for window in batch])
            nll = forward.token_nll(ids, batch[0].num_scored)
            options.progress(ids.numel())
            yield from zip(batch, nll.double(), strict=True)  # float64, so that sums lose nothing


def _batches(windows: Iterable[Window], documents: DocumentSet, size: int) -> Iterator[list[Window]]:
    """Windows of one shape together, so that nothing is padded; of each shape fewer than a batch wait."""
    waiting: dict[tuple[int, int], list[Window]] = {}
    for window in windows:
        shape = window.num_tokens(documents), window.num_scored
        batch = waiting.setdefault(shape, [])
        batch.append(window)
        if len(batch) == size:
            yield waiting.pop(shape)
    yield from waiting.values()


def measure_perplexity(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    documents: DocumentSet,
    lengths: list[int],
    *,
    layers: str | None = None,
    capacity: int | None = None,
    prefill_chunk: int | None = None,
    batch_size: int = 1,
    progress: Progress = no_progress,
) -> list[PerplexityPoint]:
    """Returns one point per length of protocol ``prefix``, in the order given.

    Args:
        model: A causal language model of transformers.
        method: Applied for the measurement, undone after it.
        geometry: What the model was trained with.
        documents: Scored documents; lengths beyond theirs give points without a perplexity.
        lengths: Context lengths [tokens], each at least 2.
        layers: The layer type that is scaled, where each has its own rotary table.
        capacity: Longer contexts are marked as beyond it [tokens]; None marks nothing.
        prefill_chunk: Tokens per forward pass; None for whole windows.
        batch_size: Documents per forward pass.
        progress: Told the tokens of each forward pass.
    """
    options = Options(layers, capacity, prefill_chunk, batch_size, progress)
    return PREFIX.measure(model, Request(method, geometry, documents, lengths), options, PREFIX)


def measure_tail(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    documents: DocumentSet,
    lengths: list[int],
    num_targets: int,
    *,
    layers: str | None = None,
    capacity: int | None = None,
    prefill_chunk: int | None = None,
    batch_size: int = 1,
    progress: Progress = no_progress,
) -> list[PerplexityPoint]:
    """Returns one point per length for the last ``num_targets`` tokens of each document.

    Args:
        model: A causal language model of transformers.
        method: Applied for the measurement, undone after it.
        geometry: What the model was trained with.
        documents: Scored documents; their cut end is the end of every window.
        lengths: Context lengths [tokens], each greater than ``num_targets``.
        num_targets: K, tokens scored at the end of each document.
        layers: The layer type that is scaled, where each has its own rotary table.
        capacity: Longer contexts are marked as beyond it [tokens]; None marks nothing.
        prefill_chunk: Tokens per forward pass; None for whole windows.
        batch_size: Documents per forward pass.
        progress: Told the tokens of each forward pass.
    """
    options = Options(layers, capacity, prefill_chunk, batch_size, progress)
    request = Request(method, geometry, documents, lengths, num_targets=num_targets)
    return TAIL.measure(model, request, options, TAIL)
