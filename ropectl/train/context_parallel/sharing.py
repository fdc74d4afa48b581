"""Gives each rank its place: which sequences it takes, and which part of them in a context-parallel group."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ropectl.errors import ConfigError
from ropectl.hf.config.dialects import text_section
from ropectl.train.data.batches import Batch
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.task import Task

if TYPE_CHECKING:
    from ropectl.train.context_parallel.group import ContextParallel


@dataclass(frozen=True)
class Sharing:
    """The place of a rank among the others.

    Attributes:
        data_rank: Index among the ranks, or groups of ranks, that take different sequences.
        data_size: Number of those ranks or groups.
        group: The ranks that share each sequence; None where nothing is shared.
    """

    data_rank: int
    data_size: int
    group: ContextParallel | None = None

    @classmethod
    def of(cls, task: Task, accelerator: Any) -> Sharing:
        """Returns this rank's place.

        Raises:
            ConfigError: If the packing does not allow it, or processes do not divide into groups.
            UnsupportedModelError: If the model cannot share a sequence.
        """
        settings = task.settings
        if settings.cp_size == 1:
            return cls(accelerator.process_index, accelerator.num_processes)
        if settings.packing == "isolated":
            raise ConfigError(
                "A sequence that several processes share cannot hold documents that are kept apart.",
                "Use --packing concat or none, or leave out --cp-size.",
            )
        from ropectl.train.context_parallel.group import ContextParallel, check_config

        check_config({**text_section(task.source.config), "rope_parameters": None})  # the run has its own tables
        group = ContextParallel.of(settings.cp_size)
        assert group is not None
        return cls(group.data_rank, group.data_size, group)

    def part(self, batch: Batch) -> Batch:
        """Returns this rank's part of each sequence."""
        return self.group.shard(batch) if self.group is not None else batch

    def use(self, model: Any) -> AbstractContextManager[None]:
        """Returns a context in which the model attends across the group, forward and backward."""
        return self.group.use(model) if self.group is not None else nullcontext()


def check_shared(folder: TrainingFolder, accelerator: Any) -> None:
    """Checks that every rank sees the run's folder, as each writes its part of a state into it.

    Raises:
        ConfigError: If a machine does not.
    """
    here = torch.tensor(float(folder.is_begun), device=accelerator.device)
    number = int(accelerator.reduce(here, reduction="sum"))
    if number < accelerator.num_processes:
        raise ConfigError(
            f"Only {number} of {accelerator.num_processes} processes see {folder.path}.",
            "Several machines need a shared disk: --out PATH",
        )
