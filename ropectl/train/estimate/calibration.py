"""Seconds of real steps on one and two layers with random weights: what the time of a whole model is made of."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch

from ropectl.evaluate.calibration import fastest
from ropectl.train.data.batches import Batch
from ropectl.train.engine.activation_checkpointing import checkpoint_activations
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.estimate.cost import Timing

#: Where lengths begin [tokens], and how long a pass has to take before they are long enough [s].
FIRST_LENGTH, LONG_ENOUGH = 128, 0.5


def calibrate(
    make: Callable[[int], Any],
    accelerator: Any,
    *,
    longest: int,
    fits: Callable[[int], bool],
    micro_batch: int,
    chunk: int | None,
    checkpointing: str,
    clip: float,
) -> tuple[Timing, bool]:
    """Returns measured seconds, and whether logits are the head applied to hidden states.

    Lengths are doubled until a pass takes long enough to say something about long ones.

    Args:
        make: Returns a model of so many layers, on the run's device.
        accelerator: Accelerate's; its precision is used.
        longest: Tokens of the run's sequences.
        fits: Whether a length can be tried; called with tokens.
        micro_batch: Sequences per forward pass.
        chunk: As for :class:`CausalLoss`.
        checkpointing: As in the settings.
        clip: Largest norm of the gradient.
    """
    seconds: dict[int, float] = {}
    length, reads_hidden = min(FIRST_LENGTH, longest), True
    for num_layers in (1, 2):
        model = make(num_layers)
        with accelerator.autocast():  # trained weights may be of another type than frozen ones
            loss = CausalLoss(model, chunk)
        reads_hidden = loss.reads_hidden
        checkpoint_activations(model, checkpointing)
        model.train()
        if num_layers == 1:
            while (
                fastest(_step(loss, accelerator, micro_batch, length), accelerator.device, tries=1) < LONG_ENOUGH
                and length < longest
                and fits(min(2 * length, longest))
            ):
                length = min(2 * length, longest)
        seconds[num_layers] = fastest(_step(loss, accelerator, micro_batch, length), accelerator.device)
        if num_layers == 2:
            optimizer, trained = _optimizer_seconds(loss, accelerator, clip)
        del model, loss
        gc.collect()
    return Timing(length, seconds[1], seconds[2], optimizer, trained), reads_hidden


def _step(loss: CausalLoss, accelerator: Any, micro_batch: int, length: int) -> Callable[[], None]:
    """Returns a forward and a backward pass over random tokens."""
    vocabulary = loss.model.get_output_embeddings().weight.shape[0]
    ids = torch.randint(0, vocabulary, (micro_batch, length), device=accelerator.device)
    batch: Batch = {"input_ids": ids, "targets": ids.roll(-1, dims=1)}

    def step() -> None:
        with accelerator.autocast():
            value = loss(**batch)
        (value / ids.numel()).backward()

    return step


def _optimizer_seconds(loss: CausalLoss, accelerator: Any, clip: float) -> tuple[float, int]:
    """Returns the seconds of clipping and of an AdamW step, and how many parameters they were for.

    Gradients stand ready. What warms up also makes the optimizer's state.
    """
    trained = [p for p in loss.parameters() if p.requires_grad and p.grad is not None]
    optimizer = torch.optim.AdamW(trained, lr=1e-9, fused=True)

    def step() -> None:
        torch.nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()

    return fastest(step, accelerator.device), sum(p.numel() for p in trained)
