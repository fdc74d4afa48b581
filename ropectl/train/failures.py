"""Explains a run that ran out of memory or disk: which state is left, and what can be done about it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ropectl.errors import TrainingError
from ropectl.memory import is_out_of_memory
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.task import Task

_DISK_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: What safetensors says in an error of its own type, and torch where a file became shorter than what was written.
_DISK_SIGNS = ("No space left on device", "Disk quota exceeded", "File too large", "inline_container")


@contextmanager
def failures_explained(task: Task, folder: TrainingFolder) -> Iterator[None]:
    """Turns errors of memory and disk into messages that say what to do.

    Raises:
        TrainingError: Naming the length and the ways to need less, or the folder; and the last saved state.
    """
    try:
        yield
    except Exception as error:  # safetensors' own type is neither an OSError nor a RuntimeError
        number = getattr(error, "errno", None)
        if number in _DISK_NUMBERS or any(sign in str(error) for sign in _DISK_SIGNS):
            raise TrainingError(
                f"{folder.path} cannot be written: the disk is full, or a limit is reached. {folder.describe_newest()}.",
                "Make room and type the same command again, which continues from there. To keep less: --keep 1",
            ) from error
        if is_out_of_memory(error):
            raise TrainingError(
                f"Memory ran out at {task.seq_len} tokens a sequence and micro-batch {task.settings.micro_batch}. {folder.describe_newest()}.",
                f"{_levers(task)} To see what needs how much: --dry-run",
            ) from error
        raise


def _levers(task: Task) -> str:
    """Returns the ways to need less memory that are not in use yet."""
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
    return f"To need less: {'; '.join(levers)}."
