"""Passkey retrieval, scored by teacher forcing.

The argmax at every answer position, given the true answer before it, equals the answer. By induction
that is exactly "greedy decoding produces the answer", for one forward pass and no decoding.

All prompts of a cell have the same number of tokens, so they are batched without padding or masks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.errors import MeasurementError
from ropectl.evaluate.progress import Progress, no_progress
from ropectl.evaluate.statistics import wilson_interval
from ropectl.evaluate.token_loss import Scorer
from ropectl.hf.patch import apply_rope
from ropectl.records import PasskeyCell, PasskeyLength
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

#: Tokens of a batch of prompts; a prompt longer than this is a batch of its own.
MAX_BATCH_TOKENS = 8192


def measure_passkey(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    builder: PasskeyPromptBuilder,
    length: int,
    depths: Sequence[float],
    trials: int,
    *,
    layers: str | None = None,
    capacity: int | None = None,
    prefill_chunk: int | None = None,
    max_batch_tokens: int = MAX_BATCH_TOKENS,
    progress: Progress = no_progress,
) -> PasskeyLength:
    """Returns how often the planted number is retrieved from prompts of ``length`` tokens.

    Args:
        model: A causal language model of transformers.
        method: Applied for the measurement, frozen at ``length`` if it depends on it, and undone after it.
        geometry: What the model was trained with.
        builder: Builds the prompts.
        length: Tokens of prompt and answer together.
        depths: Relative positions of the needle, in [0, 1]; of those that a short prompt moves to one
            place the first is measured.
        trials: Prompts per depth.
        layers: The layer type that is scaled, where each has its own rotary table.
        capacity: A longer prompt is marked as beyond it [tokens]; None marks nothing.
        prefill_chunk: Tokens per forward pass; None for whole prompts.
        max_batch_tokens: Most tokens in a batch of prompts.
        progress: Told the tokens of each batch.

    Raises:
        ConfigError: If ``length`` leaves no room for a prompt.
    """
    beyond = capacity is not None and length > capacity
    with apply_rope(model, method, geometry=geometry, seq_len=length, layers=layers):
        scorer = Scorer.of(model, prefill_chunk)
        cells = [
            _cell(scorer, builder, length, depth, trials, max_batch_tokens, progress, beyond)
            for depth in builder.distinct_depths(length, depths)
        ]
    return summarize(cells)


def summarize(cells: Sequence[PasskeyCell]) -> PasskeyLength:
    """Returns the cells of one length as one record."""
    correct, trials = sum(cell.correct for cell in cells), sum(cell.trials for cell in cells)
    low, high = wilson_interval(correct, trials)
    logprob = sum(cell.answer_logprob * cell.trials for cell in cells) / trials
    return PasskeyLength(
        cells[0].length, correct, trials, correct / trials, low, high, logprob, list(cells), cells[0].beyond_capacity
    )


def _cell(
    scorer: Scorer,
    builder: PasskeyPromptBuilder,
    length: int,
    depth: float,
    trials: int,
    max_batch_tokens: int,
    progress: Progress,
    beyond: bool,
) -> PasskeyCell:
    prompts = [builder.build(length, depth, trial) for trial in range(trials)]
    num_answer = length - prompts[0].answer_start
    batch_size = max(1, max_batch_tokens // length)
    correct, logprob = 0, 0.0
    for start in range(0, trials, batch_size):
        ids = torch.tensor([prompt.input_ids for prompt in prompts[start : start + batch_size]])
        logits = scorer.last_logits(ids, num_answer)
        answer = ids[:, -num_answer:].to(logits.device)
        correct += int((logits.argmax(dim=-1) == answer).all(dim=-1).sum())
        logprob += float(logits.log_softmax(dim=-1).gather(-1, answer.unsqueeze(-1)).double().sum())
        progress(ids.numel())
    if not math.isfinite(logprob):
        raise MeasurementError(
            f"The log-probability of the answers at {length} tokens is {logprob}: the model computes no usable probabilities there.",
            "If the dtype is float16, its range may be too small: --dtype bfloat16 or float32.",
        )
    low, high = wilson_interval(correct, trials)
    return PasskeyCell(
        length=length,
        depth=depth,
        needle_position=prompts[0].needle_position,
        prompt_tokens=length - num_answer,
        answer_tokens=num_answer,
        correct=correct,
        trials=trials,
        accuracy=correct / trials,
        ci_low=low,
        ci_high=high,
        answer_logprob=logprob / trials,
        beyond_capacity=beyond,
    )
