"""Scores of retrieval tasks by length: the answer of each trial has a score in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import TYPE_CHECKING, Any

from ropectl.evaluate.judging.statistics import ScoreSummary, by_seed, summarize_scores, wilson_interval
from ropectl.evaluate.judging.verdicts import Reached, ScoredLength, reached, uses_verdicts
from ropectl.evaluate.retrieval.prompts import Prompt, fingerprint
from ropectl.records import GivenAnswer, SeedScore, TaskAverage, TaskCell, TaskLength, TaskResult
from ropectl.tasks.task import CONTAINED, EXACT, RetrievalTask
from ropectl.tasks.trial import Trial, contained_share

if TYPE_CHECKING:
    from ropectl.evaluate.retrieval.measure import AnsweredPrompt


@dataclass(frozen=True)
class ScoredPrompt:
    """A prompt, and the score of its answer.

    Attributes:
        prompt: The prompt.
        score: In [0, 1].
        logprob: Log-probability of the known answer [nats]; None if it is generated.
        text: The generated answer; None if it is known.
    """

    prompt: Prompt
    score: float
    logprob: float | None
    text: str | None


def task_result(
    task: RetrievalTask,
    tokenizer: Any,
    answered: Sequence[AnsweredPrompt],
    trained_length: int,
    used_score: float = 0.9,
    capacity: int | None = None,
) -> TaskResult:
    """Returns one task's scores by length.

    Args:
        task: The task.
        tokenizer: Reads generated answers.
        answered: Its prompts, and how they were answered.
        trained_length: The context that the model was trained with [tokens].
        used_score: Score that counts as used.
        capacity: The length that the method is made for: longer prompts are marked [tokens]; None marks nothing.
    """
    scored = [_score(tokenizer, each) for each in answered]
    lengths = sorted({one.prompt.point.length for one in scored})
    entries = [_at_length([one for one in scored if one.prompt.point.length == length], capacity) for length in lengths]
    uses = reached(uses_verdicts(map(scored_length, entries), used_score), trained_length)
    trials = [one.prompt.trial for one in scored]
    metric = CONTAINED if trials[0].references else EXACT  # a tokenizer may have no tokens for an exact answer
    prompts = fingerprint([t.input_ids, t.answer_start, t.references, t.max_new_tokens] for t in trials)
    return TaskResult(str(task), metric, task.chance, uses.certain, prompts, entries, uses.possible, uses.at)


def scored_length(entry: TaskLength) -> ScoredLength:
    """Returns what a verdict on use is made of."""
    return entry.length, entry.score, entry.trials, entry.ci_low, entry.ci_high


def average(results: Sequence[TaskResult]) -> list[TaskAverage]:
    """Returns the mean over tasks at each length, each task counting once, as RULER reports it.

    Its interval is Wilson's over the trials of all tasks, which is wider than that of any scores with this mean.
    """
    averages = []
    for entries in zip(*(result.lengths for result in results), strict=True):
        score = math.fsum(entry.score for entry in entries) / len(entries)
        trials = sum(entry.trials for entry in entries)
        low, high = wilson_interval(score * trials, trials)
        fewest = min(entry.trials for entry in entries)
        first = entries[0]
        seeds = [
            SeedScore(own[0].seed, math.fsum(one.score for one in own) / len(own), min(one.trials for one in own))
            for own in zip(*(entry.seeds for entry in entries), strict=True)
        ]
        spread = stdev(one.score for one in seeds) if seeds else None
        averages.append(
            TaskAverage(first.length, score, len(entries), fewest, first.beyond_capacity, low, high, seeds, spread)
        )
    return averages


def average_uses(
    results: Sequence[TaskResult], averages: Sequence[TaskAverage], used_score: float, trained: int
) -> Reached:
    """Returns up to which length the tasks together are solved.

    Args:
        results: The tasks.
        averages: Their means by length.
        used_score: The mean that counts as solved.
        trained: L [tokens].
    """
    totals = (sum(entry.trials for entry in entries) for entries in zip(*(r.lengths for r in results), strict=True))
    scores = [(e.length, e.score, n, e.ci_low or 0.0, e.ci_high or 1.0) for e, n in zip(averages, totals, strict=True)]
    return reached(uses_verdicts(scores, used_score), trained)


def nothing_to_gain(tokenizer: Any) -> Callable[[Trial, Sequence[int]], bool]:
    """Returns a rule that ends a text at the tokenizer's end token, or once it contains all references.

    More text cannot change the score then.
    """

    def stop(trial: Trial, tokens: Sequence[int]) -> bool:
        return (
            tokens[-1] == tokenizer.eos_token_id or contained_share(_read(tokenizer, tokens), trial.references) == 1.0
        )

    return stop


def _read(tokenizer: Any, tokens: Sequence[int]) -> str:
    text: str = tokenizer.decode(list(tokens), skip_special_tokens=True)
    return text


def _score(tokenizer: Any, answered: AnsweredPrompt) -> ScoredPrompt:
    prompt, result = answered.prompt, answered.result
    if not prompt.trial.references:
        return ScoredPrompt(prompt, float(result.correct), result.answer_logprob, None)
    text = _read(tokenizer, result.generated)
    return ScoredPrompt(prompt, contained_share(text, prompt.trial.references), None, text)


def _at_length(scored: Sequence[ScoredPrompt], capacity: int | None) -> TaskLength:
    first = scored[0]
    length, trial = first.prompt.point.length, first.prompt.trial
    summary = _summarize(scored)
    seeds, spread = by_seed([one.score for one in scored], list(dict.fromkeys(one.prompt.seed for one in scored)))
    return TaskLength(
        length=length,
        score=summary.score,
        trials=summary.trials,
        ci_low=summary.ci_low,
        ci_high=summary.ci_high,
        prompt_tokens=trial.answer_start,
        answer_tokens=length - trial.answer_start,
        answer_logprob=summary.answer_logprob,
        scores=[one.score for one in scored],
        depths=_cells(scored),
        given=None if first.text is None else GivenAnswer(trial.references, first.text, first.score),
        beyond_capacity=capacity is not None and length > capacity,
        seeds=seeds,
        seed_spread=spread,
    )


def _cells(scored: Sequence[ScoredPrompt]) -> list[TaskCell]:
    """Returns one record a depth; none for a task without depths."""
    cells = []
    for depth in dict.fromkeys(one.prompt.point.depth for one in scored):
        own = [one for one in scored if one.prompt.point.depth == depth]
        position = own[0].prompt.position
        if depth is not None and position is not None:
            cells.append(TaskCell(depth, position, *_summarize(own)))
    return cells


def _summarize(scored: Sequence[ScoredPrompt]) -> ScoreSummary:
    return summarize_scores([one.score for one in scored], [one.logprob for one in scored])
