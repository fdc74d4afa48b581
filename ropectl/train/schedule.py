"""Learning rates as a pure function of the step, so that nothing has to be saved."""

from __future__ import annotations

import math
from collections.abc import Callable

#: Learning rate as a share of the peak, by the share of the steps after the warm-up that is done, in [0, 1].
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "linear": lambda progress: 1.0 - progress,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
}


def learning_rate(step: int, *, peak: float, schedule: str, warmup_steps: int, steps: int) -> float:
    """Returns the learning rate of a step.

    Args:
        step: Index of the optimizer step, from 0.
        peak: The learning rate after the warm-up.
        schedule: A name in :data:`SCHEDULES`.
        warmup_steps: Steps over which it rises in equal parts, the first step included.
        steps: All steps, the warm-up included.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, steps - warmup_steps)
    return peak * SCHEDULES[schedule](min(1.0, progress))
