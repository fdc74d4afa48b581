"""Runs the passes of a protocol.

Windows are made one after the other, so no more is held than a batch of them and what the protocol sums.

Legend: B windows of a batch, T scored tokens of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.cost import ForwardPass
from ropectl.evaluate.forward import Forward
from ropectl.evaluate.perplexity.protocol import Losses, PerplexityProtocol
from ropectl.evaluate.perplexity.windows import Pass, PassOptions, PerplexityRequest, Window
from ropectl.hf.model.patch import apply_rope
from ropectl.records import PerplexityPoint


def measure_perplexity(
    model: Any, protocol: PerplexityProtocol, request: PerplexityRequest, options: PassOptions | None = None
) -> list[PerplexityPoint]:
    """Returns one point per length, in the order asked for; every number is independent of that order.

    Args:
        model: A causal language model of transformers.
        protocol: The protocol.
        request: The measurement; its method is applied for each pass, and undone after it.
        options: How passes are run.

    Raises:
        MeasurementError: If the model computes no usable probabilities, or chunks are asked for that it cannot run.
    """
    request = protocol.completed(request)
    return protocol.measure(request, losses_of(model, request, options or PassOptions()))


def losses_of(model: Any, request: PerplexityRequest, options: PassOptions) -> Losses:
    """Returns what runs a pass on a model.

    Args:
        model: A causal language model of transformers.
        request: The measurement.
        options: How passes are run.
    """

    def losses(one: Pass) -> Iterator[tuple[Window, Tensor]]:
        with apply_rope(model, request.method, geometry=request.geometry, seq_len=one.seq_len, layers=options.layers):
            forward = Forward.of(model, options.prefill_chunk)
            for batch in _batches(one.windows(), request.documents, options.batch_size):
                ids = torch.tensor([window.input_ids(request.documents) for window in batch])
                nll = forward.token_nll(ids, batch[0].num_scored)
                rows, tokens = ids.shape
                options.progress(ForwardPass(rows, tokens, 0, rows * batch[0].num_scored, options.pieces(tokens)))
                yield from zip(batch, nll.double(), strict=True)  # float64, so that sums lose nothing

    return losses


def _batches(windows: Iterable[Window], documents: DocumentSet, size: int) -> Iterator[list[Window]]:
    """Yields windows of one shape together, so that nothing is padded; of each shape fewer than a batch wait."""
    waiting: dict[tuple[int, int], list[Window]] = {}
    for window in windows:
        shape = window.num_tokens(documents), window.num_scored
        batch = waiting.setdefault(shape, [])
        batch.append(window)
        if len(batch) == size:
            yield waiting.pop(shape)
    yield from waiting.values()
