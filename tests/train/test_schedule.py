"""Learning rates against transformers' own schedules, every step."""

from __future__ import annotations

import pytest
import torch
from transformers import get_scheduler

from ropectl.train.schedule import SCHEDULES, learning_rate

THEIRS = {"constant": "constant_with_warmup", "linear": "linear", "cosine": "cosine"}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("warmup", "steps"), [(0, 10), (4, 20), (7, 7)])
def test_equals_transformers(schedule: str, warmup: int, steps: int) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    scheduler = get_scheduler(THEIRS[schedule], optimizer, num_warmup_steps=warmup, num_training_steps=steps)
    theirs = []
    for _ in range(steps):
        theirs.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    ours = [learning_rate(step, peak=0.5, schedule=schedule, warmup_steps=warmup, steps=steps) for step in range(steps)]
    # The one difference is meant: transformers begins a warm-up with a step of rate zero, which is lost.
    shifted = [
        learning_rate(step - 1, peak=0.5, schedule=schedule, warmup_steps=warmup, steps=steps) for step in range(warmup)
    ]
    assert ours[warmup:] == pytest.approx(theirs[warmup:], rel=1e-12)
    assert ours[:warmup] == pytest.approx([0.5 * (step + 1) / warmup for step in range(warmup)])
    if warmup:
        assert [0.0, *shifted[1:]] == pytest.approx(theirs[:warmup], rel=1e-12)
