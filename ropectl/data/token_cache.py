"""Manages the cache of tokens: folders written under another name and then renamed, by any number of processes at once."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ropectl.errors import ConfigError

CACHE_HINT = "Choose another place for tokens: set the environment variable ROPECTL_CACHE"

#: A folder that another process began and left is removed after so long [s].
_ABANDONED = 24 * 3600


def cache_folder() -> Path:
    """Returns where stores are kept: ``tokens`` under ``$ROPECTL_CACHE``, else under ``ropectl`` in the user's cache folder."""
    if own := os.environ.get("ROPECTL_CACHE"):
        return Path(own).expanduser() / "tokens"
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "ropectl" / "tokens"


@contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """Yields a temporary folder next to the one to be made, and removes it afterwards.

    Raises:
        ConfigError: If it cannot be created.
    """
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")
    made = [place for place in folder.parents if not place.exists()]
    with writing(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        for other in folder.parent.glob(f".{folder.name}.*"):
            if _age(other) > _ABANDONED:
                shutil.rmtree(other, ignore_errors=True)
        scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        with suppress(OSError):  # text that cannot be read leaves nothing behind
            for place in made:
                place.rmdir()


def _age(folder: Path) -> float:
    """Returns the seconds since anything in a folder was written; 0 where that is unknown, as while its files change."""
    try:
        return time.time() - max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return 0.0


def publish(scratch: Path, folder: Path, is_whole: Callable[[Path], bool]) -> None:
    """Gives a finished store its name, unless another process was faster; a damaged one there is removed.

    Args:
        scratch: The finished folder.
        folder: Its name from now on.
        is_whole: Returns whether the store in a folder is complete.

    Raises:
        ConfigError: If it cannot be renamed.
    """
    with writing(folder.parent):
        for attempt in range(3):
            try:
                scratch.rename(folder)
                return
            except OSError:
                if attempt == 2 or not folder.exists():
                    raise
            if is_whole(folder):
                return
            with suppress(FileNotFoundError):  # another process has just moved it
                damaged = folder.rename(scratch.with_name(f"{scratch.name}.damaged"))
                shutil.rmtree(damaged, ignore_errors=True)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Explains what to do where the cache cannot be written.

    Raises:
        ConfigError: In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(f"Cannot write tokens to {place}: {error.strerror or error}.", CACHE_HINT) from None
