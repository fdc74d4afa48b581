"""Gives each rank the sequences of a step as tensors: arithmetic on the step number, so that nothing has to be restored.

A step takes ``batch_size`` sequences, however many devices share them: results do not depend on their number.
Legend: B samples, T tokens of the longest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ropectl.train.data.samples import IGNORE, TrainingData, TrainingSample

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Batches:
    """The batches of one rank.

    Attributes:
        data: The sequences.
        batch_size: Sequences per step, over all ranks.
        micro_batch: Sequences per forward pass on a rank.
        rank: Index of this rank among those that take different sequences.
        num_ranks: Number of those ranks.
    """

    data: TrainingData
    batch_size: int
    micro_batch: int
    rank: int = 0
    num_ranks: int = 1

    @property
    def num_micro_batches(self) -> int:
        """Forward passes of a step on every rank."""
        return -(-self.batch_size // (self.micro_batch * self.num_ranks))

    def step(self, step: int) -> list[Batch]:
        """Returns the micro-batches of a step, the same number on every rank.

        A sequence without targets fills in where there are none left, because all ranks have to run together.
        """
        first = step * self.batch_size
        batches = []
        for index in range(self.num_micro_batches):
            start = (index * self.num_ranks + self.rank) * self.micro_batch
            offsets = range(start, min(start + self.micro_batch, self.batch_size))
            samples = [self.data.sample(first + offset) for offset in offsets]
            if not samples:
                idle = self.data.sample(first)
                samples = [replace(idle, targets=[IGNORE] * len(idle.targets))]
            batches.append(collate(samples))
        return batches


def num_targets(batches: list[Batch]) -> int:
    """Returns the number of predicted tokens in batches."""
    return sum(int((batch["targets"] != IGNORE).sum()) for batch in batches)


def collate(samples: list[TrainingSample], pad_id: int = 0) -> Batch:
    """Returns a batch, padded on the right.

    Args:
        samples: At least one.
        pad_id: The token of the padding; any is possible.

    Returns:
        ``input_ids`` and ``targets``, ``(B, T)`` int64; padding is never a target. ``position_ids``, ``(B, T)``
        int64, only if a sample has some. ``attention_mask``, ``(B, T)`` int64 ones, only if positions skip.
    """
    length = max(len(sample.input_ids) for sample in samples)
    # The padding needs no mask: with causal attention a token sees only what comes before it, and padding comes
    # after every token whose loss counts. Without a mask, attention keeps its fast kernels.
    batch = {
        "input_ids": torch.tensor([_padded(sample.input_ids, length, pad_id) for sample in samples]),
        "targets": torch.tensor([_padded(sample.targets, length, IGNORE) for sample in samples]),
    }
    if any(sample.position_ids is not None for sample in samples):
        batch["position_ids"] = torch.tensor([_position_ids(sample, length) for sample in samples])
    if any(sample.skips for sample in samples):
        # Without a mask, transformers reads a jump in position_ids as the border between packed sequences
        # and cuts attention there: positions that skip would train on nothing long.
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    return batch


def _padded(values: list[int], length: int, filling: int) -> list[int]:
    return values + [filling] * (length - len(values))


def _position_ids(sample: TrainingSample, length: int) -> list[int]:
    """Returns positions that continue through the padding, so that it does not look like a new sequence."""
    own = sample.position_ids if sample.position_ids is not None else list(range(len(sample.input_ids)))
    return own + list(range(own[-1] + 1, own[-1] + 1 + length - len(own)))
