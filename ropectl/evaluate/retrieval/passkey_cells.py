"""Passkey retrieval by length and depth, summed up from answered prompts or stored cells; needs no torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ropectl.evaluate.judging.statistics import by_seed, summarize_scores, wilson_interval
from ropectl.evaluate.judging.verdicts import ScoredLength
from ropectl.evaluate.retrieval.prompts import GridPoint
from ropectl.records import PasskeyCell, PasskeyLength, SeedScore
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.trial import first_number

if TYPE_CHECKING:
    from ropectl.evaluate.retrieval.measure import AnsweredPrompt


def passkey_cells(
    answered: Sequence[AnsweredPrompt], builder: PromptBuilder, capacity: int | None = None, generate: bool = False
) -> list[PasskeyCell]:
    """Returns one record for each length and depth.

    Args:
        answered: The prompts and their answers.
        builder: The builder that made them.
        capacity: The length that the method is made for: longer prompts are marked [tokens]; None marks nothing.
        generate: Known answers were decoded greedily too: the texts count, and those that differ are counted.
    """
    groups: dict[GridPoint, list[AnsweredPrompt]] = defaultdict(list)
    for each in answered:
        groups[each.prompt.point].append(each)
    return [_cell(group, builder, capacity, generate) for group in groups.values()]


def _cell(
    answered: Sequence[AnsweredPrompt], builder: PromptBuilder, capacity: int | None, generate: bool
) -> PasskeyCell:
    first, results = answered[0].prompt, [each.result for each in answered]
    (length, depth), position = first.point, first.position
    assert depth is not None and position is not None
    scored = [result.correct for result in results]
    is_known = not first.trial.references  # else answers are generated and read
    read = [_is_key(each, builder) for each in answered] if generate or not is_known else None
    right = scored if read is None else read
    summary = summarize_scores([float(one) for one in right], [result.answer_logprob for result in results])
    return PasskeyCell(
        length=length,
        depth=depth,
        needle_position=position,
        prompt_tokens=first.trial.answer_start,
        answer_tokens=length - first.trial.answer_start,
        correct=sum(right),
        trials=summary.trials,
        accuracy=summary.score,
        ci_low=summary.ci_low,
        ci_high=summary.ci_high,
        answer_logprob=summary.answer_logprob,
        beyond_capacity=capacity is not None and length > capacity,
        num_differing=sum(a != b for a, b in zip(scored, right, strict=True)) if generate and is_known else None,
        outcomes=[int(one) for one in right],
        seeds=list(dict.fromkeys(each.prompt.seed for each in answered)),
    )


def _is_key(answered: AnsweredPrompt, builder: PromptBuilder) -> bool:
    """Returns whether the first complete number of the generated text is the key, in whatever words."""
    trial, result = answered.prompt.trial, answered.result
    key = trial.references[0] if trial.references else builder.text(trial.answer_ids).strip()
    return first_number(builder.text(list(result.generated)), result.is_cut) == key


def by_length(cells: Sequence[PasskeyCell]) -> list[PasskeyLength]:
    """Returns cells in any order as one record a length, both ascending; those of several seeds are one cell."""
    groups: dict[int, dict[float, list[PasskeyCell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        groups[cell.length][cell.depth].append(cell)
    return [
        _at_length(sorted(map(_pooled, groups[length].values()), key=lambda cell: cell.needle_position))
        for length in sorted(groups)
    ]


def _pooled(cells: Sequence[PasskeyCell]) -> PasskeyCell:
    """Returns the cells of one length and depth under several seeds as one."""
    if len(cells) == 1:
        return cells[0]
    cells = sorted(cells, key=lambda cell: cell.seeds)
    return replace(
        cells[0],
        **_together(cells),
        outcomes=[outcome for cell in cells for outcome in cell.outcomes],
        seeds=[seed for cell in cells for seed in cell.seeds],
    )


def _together(cells: Sequence[PasskeyCell]) -> dict[str, Any]:
    """Returns what cells come to together, by field."""
    correct, trials = sum(cell.correct for cell in cells), sum(cell.trials for cell in cells)
    low, high = wilson_interval(correct, trials)
    known = [(cell.answer_logprob, cell.trials) for cell in cells if cell.answer_logprob is not None]
    differing = [cell.num_differing for cell in cells if cell.num_differing is not None]
    return {
        "correct": correct,
        "trials": trials,
        "accuracy": correct / trials,
        "ci_low": low,
        "ci_high": high,
        "answer_logprob": sum(value * n for value, n in known) / sum(n for _, n in known) if known else None,
        "num_differing": sum(differing) if differing else None,
    }


def scored_length(entry: PasskeyLength) -> ScoredLength:
    """Returns what a verdict on use is made of."""
    return entry.length, entry.accuracy, entry.trials, entry.ci_low, entry.ci_high


def _at_length(cells: Sequence[PasskeyCell]) -> PasskeyLength:
    seeds, spread = _seeds(cells)
    return PasskeyLength(
        length=cells[0].length,
        **_together(cells),
        depths=list(cells),
        beyond_capacity=cells[0].beyond_capacity,
        seeds=seeds,
        seed_spread=spread,
    )


def _seeds(cells: Sequence[PasskeyCell]) -> tuple[list[SeedScore], float | None]:
    """Returns the accuracy of each seed over all depths, and its spread; nothing where depths differ in their seeds."""
    seeds = cells[0].seeds
    if any(cell.seeds != seeds for cell in cells):
        return [], None
    scores: list[float] = []
    for number in range(len(seeds)):
        for cell in cells:
            each = len(cell.outcomes) // len(seeds)
            scores += map(float, cell.outcomes[number * each : (number + 1) * each])
    return by_seed(scores, seeds)
