"""Gives trials to the model one by one, each prompt whole: exact for any model, and nothing is shared."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ropectl.evaluate.forward import Forward
from ropectl.evaluate.retrieval.answers import Answers
from ropectl.evaluate.retrieval.prefix_tree import Target
from ropectl.reporter import Progress


def run_one_by_one(forward: Forward, answers: Answers, progress: Progress) -> None:
    """Scores every trial; a text that is generated is given again, whole, for each of its tokens."""

    def last_logits(ids: Sequence[int], num_last: int) -> Tensor:
        states, _ = forward.run(torch.tensor([ids]), None, num_last, keep=False)
        progress(len(ids))
        return forward.logits(states[0])

    for index, trial in enumerate(answers.trials):
        answer, first = trial.answer_ids, trial.answer_start - 1
        if answer:
            targets = [Target(first + place, index, token) for place, token in enumerate(answer)]
            answers.score(targets, last_logits(trial.input_ids[:-1], len(answer)))
        goes_on = answers.generate or not answer
        while goes_on:
            logits = last_logits([*trial.input_ids[: trial.answer_start], *answers.text(index)], 1)
            goes_on = answers.write(index, int(answers.likeliest(logits)[0]))
