"""Measures real steps of models of few layers with random weights, from which the time of a whole model is estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ropectl.evaluate.calibration import Calibration, calibrate, part_of
from ropectl.evaluate.short_passes import ShortPass, TimedPass, doublings, time_passes
from ropectl.timing.operations import NOTHING
from ropectl.train.data.batches import Batch
from ropectl.train.engine.activation_checkpointing import checkpoint_activations
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.estimate.cost import Arithmetic, OptimizerTime
from ropectl.train.estimate.memory import TrainingSetup
from ropectl.train.settings import FinetuneSettings


@dataclass(frozen=True)
class StepCalibration:
    """What was measured of training steps.

    Attributes:
        passes: The speed of forward and backward passes.
        optimizer: The time of the optimizer's step.
        reads_hidden: Whether logits are the head applied to hidden states.
    """

    passes: Calibration
    optimizer: OptimizerTime
    reads_hidden: bool


def calibrate_steps(
    make: Callable[[int], Any],
    accelerator: Any,
    setup: TrainingSetup,
    settings: FinetuneSettings,
    arithmetic: Callable[[bool], Arithmetic],
    layers: Sequence[int],
    fits: Callable[[int], bool],
) -> StepCalibration:
    """Returns the speed of training steps.

    Args:
        make: Returns a model with a number of layers, on the run's device.
        accelerator: The Accelerator, whose precision is used.
        setup: The run, whose sequences are the longest to try.
        settings: What was asked for.
        arithmetic: Returns the operations of passes, given whether logits are the head applied to hidden states.
        layers: Numbers of layers to time; the optimizer is timed with the last.
        fits: Returns whether a length [tokens] can be tried.
    """
    optimizer: list[OptimizerTime] = []
    reads_hidden = True
    lengths = [length for length in doublings(setup.seq_len) if fits(length)]

    def passes(count: int) -> Iterator[TimedPass]:
        nonlocal reads_hidden
        model = make(count)
        with accelerator.autocast():  # trained weights may have another type than frozen ones
            loss = CausalLoss(model, settings.loss_chunk)
        checkpoint_activations(model, setup.checkpointing)
        model.train()
        reads_hidden = loss.reads_hidden
        whole = arithmetic(reads_hidden)

        def one(length: int) -> ShortPass:
            cost = part_of(whole.cost(length, setup.micro_batch), count, whole.num_layers)
            return ShortPass(
                count, setup.micro_batch, length, cost, _step(loss, accelerator, setup.micro_batch, length)
            )

        yield from time_passes([one(length) for length in lengths], accelerator.device, share=0.45)
        if count == layers[-1]:
            optimizer.append(_optimizer_time(loss, accelerator.device, settings.clip))

    measured = calibrate(passes, layers, accelerator.device)
    return StepCalibration(measured, optimizer[0], reads_hidden)


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


def _optimizer_time(loss: CausalLoss, device: Any, clip: float) -> OptimizerTime:
    """Returns the time of clipping and an AdamW step; gradients are there already.

    The warm-up also makes the optimizer's state.
    """
    trained = [p for p in loss.parameters() if p.requires_grad and p.grad is not None]
    optimizer = torch.optim.AdamW(trained, lr=1e-9, fused=True)

    def step() -> None:
        torch.nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()

    [timed] = time_passes([ShortPass(0, 0, 0, NOTHING, step)], device, share=0.1)
    return OptimizerTime(timed.alone, timed.seconds, sum(p.numel() for p in trained))
