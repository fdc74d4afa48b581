"""Perplexity over context lengths.

Protocol ``prefix``: the first N tokens of each document stand in one window and all are scored. With
causal attention the losses of a prefix are the prefix of the losses, so for frequencies that do not
depend on the length one pass over the longest context gives every shorter one exactly. A
length-dependent method is frozen at each length and takes a pass for each.

Protocol ``tail``: the same last K tokens of each document are scored, given the N tokens that end with
them. Only N varies, so a difference is what the longer context, or the longer positions, did to the
same text. One pass per length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ropectl.data.tokens import DocumentSet
from ropectl.errors import MeasurementError
from ropectl.evaluate.progress import Progress, no_progress
from ropectl.evaluate.token_loss import Scorer
from ropectl.hf.patch import apply_rope
from ropectl.records import PerplexityPoint
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

#: A larger mean loss has no perplexity that a float64 can hold.
MAX_MEAN_NLL = 700.0


@dataclass(frozen=True)
class PassPlan:
    """One forward pass over all documents, and the lengths it answers.

    Attributes:
        window: Tokens of each document in the pass.
        lengths: Context lengths read off the pass, each at most ``window``.
    """

    window: int
    lengths: tuple[int, ...]


def plan_passes(method: ScalingMethod, lengths: list[int]) -> list[PassPlan]:
    """Returns the fewest passes that give exact numbers for all lengths."""
    ordered = sorted(set(lengths))
    if method.depends_on_seq_len:
        return [PassPlan(length, (length,)) for length in ordered]
    return [PassPlan(ordered[-1], tuple(ordered))] if ordered else []


def num_tail_targets(lengths: Sequence[int]) -> int:
    """Returns K of protocol ``tail``: half the shortest context, so that every target has at least as much before it."""
    return max(1, min(lengths) // 2)


def tokens_to_run(protocol: str, method: ScalingMethod, lengths: Sequence[int], documents: DocumentSet) -> int:
    """Returns the tokens that go through the model for a measurement."""
    possible = [length for length in lengths if length <= documents.length]
    windows = possible if protocol == "tail" else [plan.window for plan in plan_passes(method, possible)]
    return sum(windows) * len(documents.documents)


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
    """Returns one point per length, in the order given; every number is independent of that order.

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
    possible = [length for length in lengths if length <= documents.length]
    sums: dict[int, list[float]] = {}
    for plan in plan_passes(method, possible):
        windows = [document.input_ids[: plan.window] for document in documents.documents]
        with apply_rope(model, method, geometry=geometry, seq_len=plan.window, layers=layers):
            scorer = Scorer.of(model, prefill_chunk)
            nll = _scored(scorer.token_nll, windows, batch_size, progress)
        for length in plan.lengths:
            sums[length] = nll[:, : length - 1].sum(dim=1).tolist()
    return [_point(length, sums.get(length), length - 1, capacity) for length in lengths]


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
    points = []
    for length in lengths:
        sums = None
        if length <= documents.length:
            windows = [document.window_to_end(length, documents.bos_token_id) for document in documents.documents]
            with apply_rope(model, method, geometry=geometry, seq_len=length, layers=layers):
                scorer = Scorer.of(model, prefill_chunk)
                nll = _scored(partial(scorer.last_nll, num_last=num_targets), windows, batch_size, progress)
            sums = nll.sum(dim=1).tolist()
        points.append(_point(length, sums, num_targets, capacity))
    return points


def _scored(score: Callable[[Tensor], Tensor], windows: list[list[int]], batch_size: int, progress: Progress) -> Tensor:
    """(documents, scored tokens) losses in float64, so that sums over them lose nothing."""
    parts = []
    for start in range(0, len(windows), batch_size):
        ids = torch.tensor(windows[start : start + batch_size])
        parts.append(score(ids).double())
        progress(ids.numel())
    return torch.cat(parts)


def _point(length: int, sums: list[float] | None, num_targets: int, limit: int | None) -> PerplexityPoint:
    beyond = limit is not None and length > limit
    if sums is None:
        return PerplexityPoint(context_length=length, beyond_capacity=beyond)
    nll_sum, num_tokens = math.fsum(sums), len(sums) * num_targets
    mean = nll_sum / num_tokens
    if not mean < MAX_MEAN_NLL:
        raise MeasurementError(
            f"The mean loss at {length} tokens is {mean:g} nats: the model computes no usable probabilities there.",
            "If the dtype is float16, its range may be too small: --dtype bfloat16 or float32.",
        )
    return PerplexityPoint(
        context_length=length,
        perplexity=math.exp(mean),
        nll_sum=nll_sum,
        num_tokens=num_tokens,
        num_documents=len(sums),
        document_nll_sums=sums,
        beyond_capacity=beyond,
    )
