"""Retrieval tasks, measured: trials of a task go through the model in one walk, and each gets a score in [0, 1]."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ropectl.data.trials import Trial
from ropectl.errors import MeasurementError
from ropectl.evaluate.statistics import bootstrap_upper, wilson_interval
from ropectl.evaluate.verdicts import uses_length
from ropectl.evaluate.walk import TrialScore, walk
from ropectl.hf.model.patch import apply_rope
from ropectl.records import GivenAnswer, TaskAverage, TaskCell, TaskLength, TaskResult
from ropectl.reporter import Progress, no_progress
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.kit import PromptKit
from ropectl.tasks.scoring import contained_share
from ropectl.tasks.task import CONTAINED, EXACT, RetrievalTask


class Asked(NamedTuple):
    """Which trial: its length [tokens], the depth of what is asked (None without depths), and its number."""

    length: int
    depth: float | None
    number: int


@dataclass(frozen=True)
class Scored:
    """A trial, and what the model made of it."""

    asked: Asked
    trial: Trial
    score: float
    logprob: float | None
    text: str | None


def asked_trials(
    task: RetrievalTask, kit: PromptKit, lengths: Sequence[int], depths: Sequence[float], trials: int
) -> list[Asked]:
    """Returns the trials of a task.

    Args:
        task: The task.
        kit: What it builds prompts with.
        lengths: Tokens of prompt and answer together.
        depths: Of those that a short prompt moves to one place, the first counts.
        trials: Per length and depth; a task without depths takes as many a length as the others.
    """
    if not task.has_depths:
        return [Asked(length, None, number) for length in lengths for number in range(trials * len(depths))]
    return [
        Asked(length, depth, number)
        for length in lengths
        for depth in task.distinct_depths(kit, length, depths)
        for number in range(trials)
    ]


def build_trials(task: RetrievalTask, kit: PromptKit, asked: Iterable[Asked]) -> list[Trial]:
    """Returns the prompts."""
    return [task.build(kit, one.length, one.depth, one.number) for one in asked]


def fingerprint(trials: Iterable[Trial]) -> str:
    """Returns a hash of prompts and answers: equal hashes mean the same trials."""
    digest = hashlib.sha256()
    _add(digest, trials)
    return digest.hexdigest()


def measure_task(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    task: RetrievalTask,
    kit: PromptKit,
    asked: Sequence[Asked],
    *,
    used_score: float = 0.9,
    layers: str | None = None,
    capacity: int | None = None,
    prefill_chunk: int | None = None,
    progress: Progress = no_progress,
) -> TaskResult:
    """Returns one task's scores by length.

    All trials are walked together where the method is the same at every length. A method that follows the
    length is frozen at each one, and the trials of each length are a walk of their own.

    Args:
        model: A causal language model of transformers.
        method: Applied for the measurement, and undone after it.
        geometry: What the model was trained with.
        task: The task.
        kit: What it builds prompts with.
        asked: Its trials, of one length after the other.
        used_score: Score that counts as used.
        layers: The layer type that is scaled, where each has its own rotary table.
        capacity: A longer prompt is marked as beyond it [tokens]; None marks nothing.
        prefill_chunk: Tokens per forward pass.
        progress: Told the tokens of each forward pass.
    """
    lengths = sorted({one.length for one in asked})
    groups = [[length] for length in lengths] if method.depends_on_seq_len else [lengths]
    scored: list[Scored] = []
    digest = hashlib.sha256()
    for group in groups:
        part = [one for one in asked if one.length in group]
        trials = build_trials(task, kit, part)
        _add(digest, trials)
        with apply_rope(model, method, geometry=geometry, seq_len=group[-1], layers=layers):
            results = walk(
                model, trials, prefill_chunk=prefill_chunk, stop=_nothing_to_gain(kit.tokenizer), progress=progress
            )
        scored += [_score(kit.tokenizer, *parts) for parts in zip(part, trials, results, strict=True)]
    entries = [
        _at_length(task, kit, [entry for entry in scored if entry.asked.length == length], capacity)
        for length in lengths
    ]
    trained = geometry.original_max_position_embeddings
    uses = uses_length([(entry.length, entry.score, entry.trials) for entry in entries], used_score, trained)
    metric = CONTAINED if scored[0].trial.references else EXACT  # a tokenizer may know no tokens of an exact answer
    return TaskResult(str(task), metric, task.chance, uses, digest.hexdigest(), entries)


def average(results: Sequence[TaskResult]) -> list[TaskAverage]:
    """Returns the mean over tasks at each length, each task counting once, as RULER reports it."""
    averages = []
    for entries in zip(*(result.lengths for result in results), strict=True):
        score = math.fsum(entry.score for entry in entries) / len(entries)
        fewest = min(entry.trials for entry in entries)
        averages.append(TaskAverage(entries[0].length, score, len(entries), fewest, entries[0].beyond_capacity))
    return averages


def score_interval(scores: Sequence[float], is_share: bool) -> tuple[float, float]:
    """Returns the 95 % interval of a mean score, both ends in [0, 1].

    Args:
        scores: One a trial, in [0, 1].
        is_share: Whether scores may lie between 0 and 1. Their interval is that of a bootstrap over trials;
            where all trials score alike it would be empty, and Wilson's is taken, which is wider than that of
            any scores with this mean.
    """
    total = math.fsum(scores)
    if is_share and len(set(scores)) > 1:
        return max(0.0, -bootstrap_upper([-score for score in scores])), min(1.0, bootstrap_upper(scores))
    low, _ = wilson_interval(math.floor(total), len(scores))
    _, high = wilson_interval(math.ceil(total), len(scores))
    return low, high


def _nothing_to_gain(tokenizer: Any) -> Callable[[Trial, Sequence[int]], bool]:
    """Ends a text at the tokenizer's end token, or once it contains all references: more cannot change its score."""

    def stop(trial: Trial, tokens: Sequence[int]) -> bool:
        return tokens[-1] == tokenizer.eos_token_id or _share(tokenizer, trial, tokens) == 1.0

    return stop


def _share(tokenizer: Any, trial: Trial, tokens: Sequence[int]) -> float:
    return contained_share(tokenizer.decode(list(tokens), skip_special_tokens=True), trial.references)


def _score(tokenizer: Any, asked: Asked, trial: Trial, result: TrialScore) -> Scored:
    if not trial.references:
        if result.answer_logprob is None or not math.isfinite(result.answer_logprob):
            raise MeasurementError(
                f"The log-probability of an answer at {asked.length} tokens is {result.answer_logprob}: the model computes "
                "no usable probabilities there.",
                "If the dtype is float16, its range may be too small: --dtype bfloat16 or float32.",
            )
        return Scored(asked, trial, float(result.correct), result.answer_logprob, None)
    text = tokenizer.decode(list(result.generated), skip_special_tokens=True)
    return Scored(asked, trial, contained_share(text, trial.references), None, text)


def _at_length(task: RetrievalTask, kit: PromptKit, scored: Sequence[Scored], capacity: int | None) -> TaskLength:
    length, first = scored[0].asked.length, scored[0]
    scores = [entry.score for entry in scored]
    is_share = bool(first.trial.references)
    depths = list(dict.fromkeys(entry.asked.depth for entry in scored))
    cells = []
    for depth in depths:
        if depth is None:
            continue
        own = [entry for entry in scored if entry.asked.depth == depth]
        values = [entry.score for entry in own]
        position = task.position(kit, length, depth)
        cells.append(
            TaskCell(depth, position, _mean(values), len(own), *score_interval(values, is_share), _logprob(own))
        )
    given = None if first.text is None else GivenAnswer(first.trial.references, first.text, first.score)
    low, high = score_interval(scores, is_share)
    return TaskLength(
        length=length,
        score=_mean(scores),
        trials=len(scores),
        ci_low=low,
        ci_high=high,
        prompt_tokens=first.trial.answer_start,
        answer_tokens=length - first.trial.answer_start,
        answer_logprob=_logprob(scored),
        scores=scores,
        depths=cells,
        given=given,
        beyond_capacity=capacity is not None and length > capacity,
    )


def _add(digest: hashlib._Hash, trials: Iterable[Trial]) -> None:
    for trial in trials:
        parts = [trial.input_ids, trial.answer_start, trial.references, trial.max_new_tokens]
        digest.update(json.dumps(parts).encode())


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _logprob(scored: Sequence[Scored]) -> float | None:
    values = [entry.logprob for entry in scored if entry.logprob is not None]
    return _mean(values) if values else None
