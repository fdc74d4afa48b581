"""The processes that share a comparison: which cells each measures, and how all of them receive all records.

Nothing is exchanged while cells are measured, so a slow process does not delay the others and a lost one loses only its
cell. Processes agree on what is missing before they begin, and exchange records once, at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from ropectl.errors import MeasurementError
from ropectl.printable import first_line

T = TypeVar("T")

#: How long the first to finish waits for the last.
_PATIENCE = timedelta(days=30)


@dataclass(frozen=True)
class Ranks:
    """This process among those that a launcher started.

    Attributes:
        rank: Its number.
        count: How many there are.
    """

    rank: int = 0
    count: int = 1

    @classmethod
    def of_launcher(cls) -> Ranks:
        """Returns the rank that ``torchrun`` or ``accelerate launch`` gave this process; without them there is one process."""
        return cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    @property
    def is_main(self) -> bool:
        """True for the process that writes what all have found."""
        return self.rank == 0

    def share(self, items: Sequence[T], cost: Callable[[T], float]) -> list[T]:
        """Returns the share of this process: the most expensive items first, each given to the process with least to do.

        Every process computes the same shares. A single process keeps the order.

        Args:
            items: All there is to do, the same in every process.
            cost: Returns the cost of an item.
        """
        if self.count == 1:
            return list(items)
        loads = [0.0] * self.count
        own = []
        for item in sorted(items, key=cost, reverse=True):  # sorted is stable: equal costs keep their order
            taker = loads.index(min(loads))
            loads[taker] += cost(item)
            if taker == self.rank:
                own.append(item)
        return own

    def agree(self, own: T) -> T:
        """Returns the main process's value."""
        if self.count == 1:
            return own
        from accelerate.utils import broadcast_object_list

        self._connect()
        values = [own]
        broadcast_object_list(values)
        return values[0]

    def gather(self, own: Sequence[T]) -> list[T]:
        """Returns the items of all processes, by rank; waits for the last.

        Raises:
            MeasurementError: If one of them has ended.
        """
        if self.count == 1:
            return list(own)
        from accelerate.utils import gather_object

        self._connect()
        try:
            return list(gather_object(list(own)))
        except RuntimeError as error:  # what gloo and NCCL raise when a peer has gone
            raise MeasurementError(
                f"Process {self.rank} of {self.count} has measured its cells, but another one ended before its own were "
                f"done ({first_line(error)}).",
                "Finished records are kept. To measure what is missing, type the same command again.",
            ) from error

    def end(self) -> None:
        """Ends the connection to the other processes, if there is one."""
        if self.count > 1:
            import torch.distributed

            if torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()

    def _connect(self) -> Any:
        import torch
        from accelerate import PartialState

        return PartialState(cpu=not torch.accelerator.is_available(), timeout=_PATIENCE)
