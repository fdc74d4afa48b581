"""Gives each rank the sequences of a step: arithmetic on the step number, so that nothing has to be restored.

A step takes ``batch_size`` sequences, however many devices share them: results do not depend on their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from ropectl.train.data.collate import collate
from ropectl.train.data.samples import IGNORE, TrainingData

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Batches:
    """The batches of one rank.

    Attributes:
        data: The sequences.
        batch_size: Sequences per step, over all ranks.
        micro_batch: Sequences per forward pass on a rank.
        rank: Index of this rank among those that take different sequences.
        num_ranks: How many there are.
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
        """Returns the micro-batches of a step, as many on every rank.

        Where sequences run out, a sequence without targets stands in: all ranks have to run together.
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
    """Returns how many tokens are predicted in some batches."""
    return sum(int((batch["targets"] != IGNORE).sum()) for batch in batches)
