"""Estimates the arithmetic of a training step and its time, scaled up from what was measured of few layers.

The operations of a forward pass are those of :mod:`ropectl.evaluate.cost`. The backward pass takes as many again for the
gradients of the inputs, and once more for those of trained weights; for attention, twice as many. Activation
checkpointing repeats the layers' forward pass, the chunked loss the head's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ropectl.evaluate.cost import ForwardCost, ForwardPass
from ropectl.timing.operations import NOTHING, Cost
from ropectl.timing.speed import Span, Speed


@dataclass(frozen=True)
class Arithmetic:
    """The operations of a step.

    Attributes:
        forward: The operations of a forward pass.
        num_layers: Decoder layers.
        layers_trained: Share of the layers' weights that is trained, in [0, 1].
        head_trained: Whether the weights of the output head are trained.
        recomputes: Whether layers are computed again in the backward pass.
        chunked: Whether the head is computed again.
    """

    forward: ForwardCost
    num_layers: int
    layers_trained: float
    head_trained: bool
    recomputes: bool
    chunked: bool

    def cost(self, length: int, rows: int = 1) -> Cost:
        """Returns the cost of one pass, forward and backward.

        Args:
            length: Tokens of a sequence.
            rows: Sequences side by side.
        """
        forward = self.forward.of_pass(ForwardPass(rows, length, scored=rows * length))
        return Cost(
            forward.passes,
            forward.weights * (2 + self.layers_trained + self.recomputes),
            forward.attention * (3 + self.recomputes),
            forward.head * (2 + self.head_trained + self.chunked),
        )


@dataclass(frozen=True)
class OptimizerTime:
    """The time of clipping and an optimizer step.

    Attributes:
        alone: Without other work on the machine [s].
        seconds: Timings.
        trained: Parameters that were trained.
    """

    alone: float
    seconds: Sequence[float]
    trained: int

    def span(self, trained: float) -> Span:
        """Returns the time with another number of trained parameters on a device."""
        usual = median(self.seconds)
        return Span(min(self.alone, *self.seconds), usual, max(self.seconds)) * (trained / max(1, self.trained))


def seconds_per_step(
    speed: Speed,
    optimizer: Span,
    arithmetic: Arithmetic,
    lengths: Sequence[int],
    *,
    micro_batch: int,
    micro_batches: float,
    cp_size: int = 1,
) -> Span:
    """Returns the time of an optimizer step, without the exchange between devices.

    Args:
        speed: The measured speed.
        optimizer: The time of the optimizer.
        arithmetic: The operations of the whole model.
        lengths: Lengths of the first sequences, as a sample of all [tokens].
        micro_batch: Sequences per forward pass; shorter ones are padded to the longest.
        micro_batches: Forward passes of a step on a device.
        cp_size: Devices that share each sequence.
    """
    longest = [max(lengths[start : start + micro_batch]) for start in range(0, len(lengths), micro_batch)]
    cost = sum((arithmetic.cost(length, micro_batch) for length in longest), NOTHING)
    return speed.seconds(cost) * (micro_batches / len(longest) / cp_size) + optimizer
