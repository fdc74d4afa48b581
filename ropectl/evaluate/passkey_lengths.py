"""Passkey cells put together length by length; needs no torch, for reports read records without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ropectl.evaluate.statistics import wilson_interval
from ropectl.records import PasskeyCell, PasskeyLength


def by_length(cells: Sequence[PasskeyCell]) -> list[PasskeyLength]:
    """Returns cells in any order as one record a length, both ascending."""
    groups: dict[int, list[PasskeyCell]] = defaultdict(list)
    for cell in cells:
        groups[cell.length].append(cell)
    return [summarize(sorted(groups[length], key=lambda cell: cell.needle_position)) for length in sorted(groups)]


def summarize(cells: Sequence[PasskeyCell]) -> PasskeyLength:
    """Returns the cells of one length as one record."""
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
