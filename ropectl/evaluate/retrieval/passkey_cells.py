"""Passkey retrieval by length and depth, summed up from answered prompts or stored cells; needs no torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ropectl.evaluate.retrieval.prompts import GridPoint
from ropectl.evaluate.statistics import summarize_scores, wilson_interval
from ropectl.evaluate.verdicts import ScoredLength
from ropectl.records import PasskeyCell, PasskeyLength
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
    )


def _is_key(answered: AnsweredPrompt, builder: PromptBuilder) -> bool:
    """Returns whether the first complete number of the generated text is the key, in whatever words."""
    trial, result = answered.prompt.trial, answered.result
    key = trial.references[0] if trial.references else builder.text(trial.answer_ids).strip()
    return first_number(builder.text(list(result.generated)), result.is_cut) == key


def by_length(cells: Sequence[PasskeyCell]) -> list[PasskeyLength]:
    """Returns cells in any order as one record a length, both ascending."""
    groups: dict[int, list[PasskeyCell]] = defaultdict(list)
    for cell in cells:
        groups[cell.length].append(cell)
    return [_at_length(sorted(groups[length], key=lambda cell: cell.needle_position)) for length in sorted(groups)]


def scored_length(entry: PasskeyLength) -> ScoredLength:
    """Returns what a verdict on use is made of."""
    return entry.length, entry.accuracy, entry.trials, entry.ci_low, entry.ci_high


def _at_length(cells: Sequence[PasskeyCell]) -> PasskeyLength:
    correct, trials = sum(cell.correct for cell in cells), sum(cell.trials for cell in cells)
    low, high = wilson_interval(correct, trials)
    logprobs = [cell.answer_logprob * cell.trials for cell in cells if cell.answer_logprob is not None]
    differing = [cell.num_differing for cell in cells if cell.num_differing is not None]
    return PasskeyLength(
        length=cells[0].length,
        correct=correct,
        trials=trials,
        accuracy=correct / trials,
        ci_low=low,
        ci_high=high,
        answer_logprob=sum(logprobs) / trials if logprobs else None,
        depths=list(cells),
        beyond_capacity=cells[0].beyond_capacity,
        num_differing=sum(differing) if differing else None,
    )
