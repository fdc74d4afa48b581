"""Estimates the arithmetic of a training step and its time, scaled up from one and two measured layers.

The operations of a forward pass are those of :mod:`ropectl.evaluate.cost`. The backward pass takes as many again for the
gradients of the inputs, and once more for those of trained weights; for attention, twice as many. Activation
checkpointing repeats the layers' forward pass, the chunked loss the head's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropectl.evaluate.cost import ForwardCost


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

    def decoder(self, length: int) -> float:
        """Returns the operations of all layers for one sequence, forward and backward."""
        weights = 2 * self.forward.layers * length * (2 + self.layers_trained + self.recomputes)
        attention = self.forward.attention * length**2 * (3 + self.recomputes)
        return weights + attention

    def output(self, length: int) -> float:
        """Returns the operations of the output head for one sequence, forward and backward."""
        return self.forward.window(0, length).head * (2 + self.head_trained + self.chunked)

    def total(self, length: int) -> float:
        """Returns the operations of one sequence, forward and backward."""
        return self.decoder(length) + self.output(length)


@dataclass(frozen=True)
class Timing:
    """The seconds that a model of one layer and one of two took.

    Attributes:
        length: Tokens of a sequence.
        one: Forward and backward pass of a micro-batch with one layer [s].
        two: The same with two layers [s].
        optimizer: Clipping and optimizer step of the model with two layers [s].
        trained: Its trained parameters.
    """

    length: int
    one: float
    two: float
    optimizer: float
    trained: int

    @property
    def layer(self) -> float:
        """Seconds of one layer; at most half of two, whatever was measured."""
        return min(max(self.two - self.one, 0.0), self.two / 2) or self.two / 2

    @property
    def rest(self) -> float:
        """The seconds of embeddings, head and loss."""
        return max(0.0, self.two - 2 * self.layer)


def micro_batch_seconds(timing: Timing, arithmetic: Arithmetic, length: int, cp_size: int = 1) -> float:
    """Returns the seconds of one micro-batch: the layers' by their operations, the rest by tokens.

    Args:
        timing: The measured time.
        arithmetic: The operations of the whole model.
        length: Tokens of a sequence.
        cp_size: Devices that share it.
    """
    layers = arithmetic.num_layers * timing.layer * arithmetic.decoder(length) / arithmetic.decoder(timing.length)
    return (layers + timing.rest * length / timing.length) / cp_size


def seconds_per_step(
    timing: Timing,
    arithmetic: Arithmetic,
    lengths: Sequence[int],
    *,
    micro_batch: int,
    micro_batches: float,
    trained: float,
    cp_size: int = 1,
) -> float:
    """Returns the seconds of an optimizer step, without the exchange between devices.

    Args:
        timing: The measured time.
        arithmetic: The operations of the whole model.
        lengths: Lengths of the first sequences, as a sample of all [tokens].
        micro_batch: Sequences per forward pass; shorter ones are padded to the longest.
        micro_batches: Forward passes of a step on a device.
        trained: Trained parameters on a device.
        cp_size: Devices that share each sequence.
    """
    longest = [max(lengths[start : start + micro_batch]) for start in range(0, len(lengths), micro_batch)]
    passes = [micro_batch_seconds(timing, arithmetic, length, cp_size) for length in longest]
    return micro_batches * sum(passes) / len(passes) + timing.optimizer * trained / max(1, timing.trained)
