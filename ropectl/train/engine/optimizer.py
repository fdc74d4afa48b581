"""AdamW over what is trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ropectl.train.settings import FinetuneSettings


def make_optimizer(module: nn.Module, settings: FinetuneSettings) -> torch.optim.Optimizer:
    """Returns the optimizer of all parameters that require gradients; weight decay is on matrices only."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    matrices, vectors = ([p for p in trained if (p.ndim > 1) == wanted] for wanted in (True, False))
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.peak_learning_rate,
        betas=(0.9, settings.beta2),
        fused=True,
    )


def begin(optimizer: Any) -> None:
    """Gives each parameter the state that AdamW would make in its first step.

    The state that is saved before the first step is then as large as any later one: it proves that those can be.
    Sharded states cannot be saved empty: torch then takes a step with zero gradients first, which counts, so the
    correction of AdamW's averages would be wrong from the first real step on; under a gradient scaler it fails.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            optimizer.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),  # where fused kernels read it
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
