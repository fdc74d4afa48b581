"""A disk that is full while a run is written, told with what is left and what can be done about it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ropectl.errors import TrainingError
from ropectl.train.run_folder import TrainingFolder

_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: What safetensors says in an error of its own type, and torch where a file became shorter than what was written.
_SIGNS = ("No space left on device", "Disk quota exceeded", "File too large", "inline_container")


@contextmanager
def disk_explained(folder: TrainingFolder) -> Iterator[None]:
    """Turns a full disk into what can be done about it.

    Raises:
        TrainingError: Naming the folder and the last saved state.
    """
    try:
        yield
    except Exception as error:  # safetensors' own type is neither an OSError nor a RuntimeError
        if not _is_of_disk(error):
            raise
        raise TrainingError(
            f"{folder.path} cannot be written: the disk is full, or a limit is reached. {folder.describe_newest()}.",
            "Make room and type the same command again, which goes on from there. Less is kept with --keep 1.",
        ) from error


def _is_of_disk(error: Exception) -> bool:
    number = getattr(error, "errno", None)
    return number in _NUMBERS or any(sign in str(error) for sign in _SIGNS)
