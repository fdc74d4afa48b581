"""Writes a folder or file under a hidden name and renames it once it is complete."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ropectl.errors import ConfigError
from ropectl.file_reading import reason_of
from ropectl.output_places import ANOTHER_PLACE, MODEL_FILES, check_folder, check_output, check_writable
from ropectl.printable import shorten


def _check_name(out: Path) -> None:
    """Checks that the file system accepts the name, and the longer hidden name that is written first."""
    try:
        os.lstat(_beside(out.absolute(), "tmp"))
    except (FileNotFoundError, NotADirectoryError):
        pass  # the usual case, and one with its own message later
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--out {shorten(str(out))} is not possible: {reason_of(error)}.", "Choose another name."
        ) from None


def _beside(out: Path, kind: str) -> Path:
    return out.with_name(f".{out.name}.{os.getpid()}.{kind}")


def prepare_place(out: Path, sources: Sequence[Path], overwrite: bool) -> None:
    """Checks a place before anything is written to it, and removes what killed runs left there.

    Args:
        out: The place.
        sources: Places that must not be touched.
        overwrite: Whether what is there may be replaced.

    Raises:
        ConfigError: If it cannot be written.
    """
    _check_name(out)
    clear_leftovers(out)
    _check_out(out, sources, overwrite)
    check_writable(out.parent)


def _check_out(out: Path, sources: Sequence[Path], overwrite: bool) -> None:
    """Checks that the result replaces nothing that is to stay."""
    try:
        whole = out.resolve()
    except (OSError, RuntimeError):
        raise ConfigError(f"{out} is a link that leads to itself.", ANOTHER_PLACE) from None
    for source in sources:
        here, there = whole, source.resolve()
        if here == there or there in here.parents or here in there.parents:
            raise ConfigError(
                f"{out} is the source itself, or one lies inside the other: the source is never written to.",
                "Choose another place: --out PATH",
            )
    if out.exists() and not out.is_dir():
        check_output(out)
    elif not out.exists():
        check_folder(out)
    is_empty = out.is_dir() and not any(out.iterdir())
    if (out.exists() or out.is_symlink()) and not is_empty and not overwrite:
        raise ConfigError(f"{out} exists already.", "To replace it: --overwrite")
    if out.is_symlink():
        raise ConfigError(f"{out} is a link.", "Name the place itself: --out PATH")
    if overwrite and out.is_dir() and not is_empty and not any((out / name).is_file() for name in MODEL_FILES):
        raise ConfigError(
            f"{out} is a folder without a config.json or adapter_config.json: not a checkpoint, so it is not replaced.",
            "Choose another place.",
        )
    if overwrite and out.is_file() and out.suffix != ".gguf":
        raise ConfigError(f"{out} is a file; a checkpoint is a folder.", "Choose another place: --out PATH")


@contextmanager
def staged(out: Path, overwrite: bool) -> Iterator[Path]:
    """Yields a path beside ``out`` to write to; renamed to ``out`` at the end, removed after any failure.

    What was at ``out`` is moved away only once the new result is complete. Leftovers of a killed run under the
    same name are removed.

    Raises:
        ConfigError: If another run has put its result there in the meantime, and replacing it was not asked for.
    """
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(out)
    aside, old = (_beside(out, kind) for kind in ("tmp", "old"))
    try:
        yield aside
        if out.exists() and not (out.is_dir() and not any(out.iterdir())):
            if not overwrite:
                raise ConfigError(f"{out} has been created in the meantime.", "To replace it: --overwrite")
            out.rename(old)
        try:
            aside.rename(out)
        except BaseException:
            if old.exists():
                old.rename(out)
            raise
    except BaseException:  # Ctrl-C too must leave nothing half written behind
        _remove(aside)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def clear_leftovers(out: Path) -> None:
    """Removes what killed runs left next to ``out``; puts back what one had moved away and not yet replaced."""
    pattern = re.compile(re.escape(f".{out.name}.") + r"(\d+)\.(tmp|old)")
    for path in sorted(out.absolute().parent.glob(f".{glob.escape(out.name)}.*")):
        match = pattern.fullmatch(path.name)
        if match is None or _is_alive(int(match[1])):
            continue
        if match[2] == "old" and not out.exists():
            path.rename(out)
        else:
            _remove(path)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
