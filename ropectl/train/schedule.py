"""Learning rates as a pure function of the step: nothing to save, nothing to restore."""

from __future__ import annotations

import math
from collections.abc import Callable

from ropectl.names import unknown_choice

#: What is left of the peak, given how much of the way after the warm-up is done, in [0, 1].
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "linear": lambda progress: 1.0 - progress,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
}


def check_schedule(name: str) -> None:
    """Checks that there is such a schedule.

    Raises:
        ConfigError: If there is none.
    """
    if name not in SCHEDULES:
        raise unknown_choice("schedule", name, SCHEDULES)


def learning_rate(step: int, *, peak: float, schedule: str, warmup_steps: int, steps: int) -> float:
    """Returns the learning rate of a step.

    Args:
        step: Index of the optimizer step, from 0.
        peak: The learning rate after the warm-up.
        schedule: A name in :data:`SCHEDULES`.
        warmup_steps: Steps over which it rises in equal parts; the first step has a part already.
        steps: All steps, the warm-up included.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, steps - warmup_steps)
    return peak * SCHEDULES[schedule](min(1.0, progress))
