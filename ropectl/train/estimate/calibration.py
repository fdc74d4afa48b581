"""Measures real steps of one and two layers with random weights, from which the time of a whole model is estimated."""

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
from ropectl.train.estimate.memory import TrainingSetup
from ropectl.train.settings import FinetuneSettings

#: The first length [tokens], and the time that a pass at a sufficient length takes [s].
FIRST_LENGTH, LONG_ENOUGH = 128, 0.5


def calibrate(
    make: Callable[[int], Any],
    accelerator: Any,
    setup: TrainingSetup,
    settings: FinetuneSettings,
    fits: Callable[[int], bool],
) -> tuple[Timing, bool]:
    """Returns measured seconds, and whether logits are the head applied to hidden states.

    The length is doubled until a pass takes long enough to represent long ones.

    Args:
        make: Returns a model with a number of layers, on the run's device.
        accelerator: The Accelerator, whose precision is used.
        setup: The run, whose sequences are the longest to try.
        settings: What was asked for.
        fits: Returns whether a length [tokens] can be tried.
    """
    seconds: dict[int, float] = {}
    longest, micro_batch = setup.seq_len, setup.micro_batch
    length, reads_hidden = min(FIRST_LENGTH, longest), True
    for num_layers in (1, 2):
        model = make(num_layers)
        with accelerator.autocast():  # trained weights may have another type than frozen ones
            loss = CausalLoss(model, settings.loss_chunk)
        reads_hidden = loss.reads_hidden
        checkpoint_activations(model, setup.checkpointing)
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
            optimizer, trained = _optimizer_seconds(loss, accelerator, settings.clip)
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
    """Returns the seconds of clipping and an AdamW step, and the number of parameters; gradients are there already.

    The warm-up also makes the optimizer's state.
    """
    trained = [p for p in loss.parameters() if p.requires_grad and p.grad is not None]
    optimizer = torch.optim.AdamW(trained, lr=1e-9, fused=True)

    def step() -> None:
        torch.nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()

    return fastest(step, accelerator.device), sum(p.numel() for p in trained)
