"""Passkey retrieval, scored by teacher forcing.

The argmax at every answer position, given the true answer before it, equals the answer. By induction
that is exactly "greedy decoding produces the answer", without decoding. Where a tokenizer gives the answer no
tokens of its own, it is decoded greedily and read as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ropectl.data.passkey import PasskeyPrompt, PasskeyPromptBuilder
from ropectl.evaluate.passkey_lengths import by_length
from ropectl.evaluate.passkey_plan import PasskeyTree, Point, plan_passkey, prompts_of, walks
from ropectl.evaluate.statistics import wilson_interval
from ropectl.evaluate.walk import MAX_BATCH_TOKENS, TrialScore, walk
from ropectl.hf.model.patch import apply_rope
from ropectl.records import PasskeyCell, PasskeyLength
from ropectl.reporter import Progress, no_progress
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod


def measure_passkey(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    builder: PasskeyPromptBuilder,
    lengths: Sequence[int],
    depths: Sequence[float],
    trials: int,
    **options: Any,
) -> list[PasskeyLength]:
    """Returns how often the planted number is retrieved, for each length.

    Args:
        model: A causal language model of transformers.
        method: Applied for the measurement, and undone after it.
        geometry: What the model was trained with.
        builder: Builds the prompts.
        lengths: Tokens of prompt and answer together.
        depths: Relative positions of the needle, in [0, 1]; of those that a short prompt moves to one
            place the first is measured.
        trials: Prompts per length and depth.
        options: As for :func:`measure_trees`.

    Raises:
        ConfigError: If a length leaves no room for a prompt.
        MeasurementError: If the model computes no usable probabilities.
    """
    trees = plan_passkey(method, builder, lengths, depths)
    return by_length(measure_trees(model, method, geometry, builder, trees, trials, **options))


def measure_trees(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    builder: PasskeyPromptBuilder,
    trees: Sequence[PasskeyTree],
    trials: int,
    *,
    layers: str | None = None,
    capacity: int | None = None,
    prefill_chunk: int | None = None,
    max_batch_tokens: int = MAX_BATCH_TOKENS,
    generate: bool = False,
    progress: Progress = no_progress,
) -> list[PasskeyCell]:
    """Returns the cells of some trees, walked together where the model computes the same in them.

    Args:
        model: A causal language model of transformers.
        method: Applied for each walk, frozen at its length if it depends on it, and undone after it.
        geometry: What the model was trained with.
        builder: Builds the prompts.
        trees: What to measure.
        trials: Prompts per point.
        layers: The layer type that is scaled, where each has its own rotary table.
        capacity: A longer prompt is marked as beyond it [tokens]; None marks nothing.
        prefill_chunk: Most tokens of a prompt per forward pass; None for what the walk chooses.
        max_batch_tokens: Most tokens that the rows of a cache hold together.
        generate: Decode the answers greedily too, and count where the text says otherwise.
        progress: Told the tokens of each forward pass.

    Raises:
        MeasurementError: If the model computes no usable probabilities.
    """
    cells: dict[tuple[int, Point], PasskeyCell] = {}
    for group in walks(trees):
        points = [(tree.position, point) for tree in group for point in tree.points]
        prompts = prompts_of(builder, [point for _, point in points], trials)
        seq_len = max(length for _, (length, _) in points)
        with apply_rope(model, method, geometry=geometry, seq_len=seq_len, layers=layers):
            scores = walk(
                model, [prompt.trial for prompt in prompts], prefill_chunk=prefill_chunk,
                max_batch_tokens=max_batch_tokens, generate=generate, progress=progress,
            )  # fmt: skip
        for number, place in enumerate(points):
            own = slice(number * trials, (number + 1) * trials)
            length, depth = place[1]
            beyond = capacity is not None and length > capacity
            cells[place] = _cell(builder, length, depth, prompts[own], scores[own], generate, beyond)
    return [cells[tree.position, point] for tree in trees for point in tree.points]


def _cell(
    builder: PasskeyPromptBuilder,
    length: int,
    depth: float,
    prompts: Sequence[PasskeyPrompt],
    scores: Sequence[TrialScore],
    generate: bool,
    beyond: bool,
) -> PasskeyCell:
    trials, prompt_tokens = len(prompts), prompts[0].answer_start
    scored = [score.correct for score in scores]
    read = [_says(builder.text(s.generated), p.key) for s, p in zip(scores, prompts, strict=True)]
    generated_only = builder.answers == "text"
    correct = sum(read if generated_only else scored)
    logprobs = [score.answer_logprob for score in scores if score.answer_logprob is not None]
    compared = generate and not generated_only
    low, high = wilson_interval(correct, trials)
    return PasskeyCell(
        length=length,
        depth=depth,
        needle_position=prompts[0].needle_position,
        prompt_tokens=prompt_tokens,
        answer_tokens=length - prompt_tokens,
        correct=correct,
        trials=trials,
        accuracy=correct / trials,
        ci_low=low,
        ci_high=high,
        answer_logprob=sum(logprobs) / trials if logprobs else None,
        beyond_capacity=beyond,
        num_differing=sum(a != b for a, b in zip(scored, read, strict=True)) if compared else None,
    )


def _says(text: str, key: str) -> bool:
    """Whether a text begins with the number."""
    number = re.match(r"\s*(\d+)", text)
    return number is not None and number[1] == key
