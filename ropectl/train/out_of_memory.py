"""Running out of memory while training, told with what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ropectl.errors import TrainingError
from ropectl.hf.model.out_of_memory import is_out_of_memory
from ropectl.train.run_folder import TrainingFolder
from ropectl.train.task import Task


@contextmanager
def memory_explained(task: Task, folder: TrainingFolder) -> Iterator[None]:
    """Turns running out of memory into what can be done about it.

    Raises:
        TrainingError: Naming the length, the levers, and the last saved state.
    """
    try:
        yield
    except (RuntimeError, MemoryError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise TrainingError(
            f"Memory ran out at {task.seq_len} tokens a sequence and micro-batch {task.settings.micro_batch}. {folder.describe_newest()}.",
            f"{_levers(task)} What needs how much: --dry-run",
        ) from error


def _levers(task: Task) -> str:
    """The levers that are left: those in use already are not named."""
    settings = task.settings
    levers = []
    if settings.activation_checkpointing == "off":
        levers.append("--activation-checkpointing on")
    elif settings.activation_checkpointing == "on" and settings.device != "cpu":
        levers.append("--activation-checkpointing offload")
    levers.append(
        "--micro-batch 1 and a smaller --loss-chunk" if settings.micro_batch > 1 else "a smaller --loss-chunk"
    )
    levers.append("a shorter --seq-len, for example with --positions pose")
    if settings.strategy == "full":
        levers.append("--strategy lora")
    levers.append("on several devices FSDP2 and --cp-size")
    return f"Levers: {'; '.join(levers)}."
