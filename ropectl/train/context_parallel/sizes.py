"""How processes divide into groups that share a sequence."""

from __future__ import annotations

from ropectl.errors import ConfigError


def check_group_size(size: int, world: int) -> None:
    """Checks that processes divide into groups that share a sequence.

    Args:
        size: Processes of a group.
        world: All processes.

    Raises:
        ConfigError: If they do not.
    """
    if size > 1 and world == 1:
        raise ConfigError(
            f"cp-size = {size} needs {size} processes, and this is one process on its own.",
            f"Start it with: accelerate launch --num_processes {size} -m ropectl finetune ...",
        )
    if world % size:
        raise ConfigError(
            f"cp-size = {size} does not divide the {world} processes.",
            f"Start a multiple of {size} processes, or choose a divisor of {world}.",
        )
