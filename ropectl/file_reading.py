"""Reads files whose place was typed or that came from elsewhere: anything may stand there, and nothing is read blindly.

A pipe may never deliver, a device never end, a link lead to itself, a file be larger than memory. Each is refused with a
message before it costs time or memory.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ropectl.errors import ConfigError, DataError
from ropectl.printable import shorten, shown

#: No text is larger, as a file or as a line of one [bytes]. Decoded, it takes up to 4 times as much.
MAX_TEXT = 128 * 2**20

#: How long a pipe may deliver nothing before it is given up [s].
PATIENCE = 2.0

_AT_ONCE = 2**16

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_REASONS = {
    errno.ELOOP: "it is a link that leads to itself",
    errno.ENAMETOOLONG: "the name is longer than the system allows",
    errno.ENOENT: "there is no such file",
    errno.EACCES: "it may not be read",
}


def reason_of(error: OSError | ValueError) -> str:
    """Returns why a file could not be reached, in words."""
    number = error.errno if isinstance(error, OSError) else None
    text = error.strerror if isinstance(error, OSError) else None
    return _REASONS.get(number or 0) or text or str(error)


def home_path(path: str | Path) -> Path:
    """Returns a path with ``~`` as the home directory, which shells do not expand in ``--out=~/x``.

    Raises:
        ConfigError: If there is no such user, or the system allows no such name.
    """
    try:
        whole = Path(path).expanduser()
    except RuntimeError:
        user = Path(path).parts[0]
        raise ConfigError(f"There is no home directory of {shorten(user)}.", "Write the path in full.") from None
    try:
        os.lstat(whole)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
            raise ConfigError(f"{shown(str(whole))} is not a possible path: {reason_of(error)}.") from None
    return whole


def other_kind(path: Path) -> str | None:
    """Returns what stands at a path instead of an ordinary file, in words; None if one does, or nothing is there.

    Links are followed: one that leads nowhere, or to itself, is something else too.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a link that leads to itself"
        return "a link to nothing" if path.is_symlink() else None
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "not an ordinary file")


def check_ordinary(path: Path, hint: str = "") -> None:
    """Checks that a path is an ordinary file that may be read.

    Raises:
        ConfigError: If it is not, or is not there.
    """
    if kind := other_kind(path):
        raise ConfigError(f"{path} is {kind}, not an ordinary file.", hint)
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {reason_of(error)}.", hint) from None


def check_size(path: Path, most: int, hint: str = "") -> None:
    """Checks that a path is an ordinary file of at most ``most`` bytes.

    Raises:
        ConfigError: If it is not.
    """
    check_ordinary(path, hint)
    if (size := path.stat().st_size) > most:
        raise ConfigError(f"{path} has {_sized(size)}; what belongs there has at most {_sized(most)}.", hint)


def read_bytes(path: Path, most: int = MAX_TEXT, hint: str = "", pipes: bool = False) -> bytes:
    """Returns the content of a file.

    Args:
        path: The file.
        most: The size from which it is something else [bytes].
        hint: What to do if it cannot be read.
        pipes: Whether it may be a pipe, as a shell makes of ``<(command)``; one that delivers nothing is given up.

    Raises:
        ConfigError: If it cannot be read, is not an ordinary file, or is larger.
    """
    is_pipe = other_kind(path) == _KINDS[stat.S_IFIFO]
    if not (pipes and is_pipe):
        check_size(path, most, hint)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 (a descriptor)
            content = b"".join(
                _arriving(descriptor, path, most, hint) if is_pipe else iter(lambda: file.read(most), b"")
            )
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {reason_of(error)}.", hint) from None
    return content


def _sized(size: int) -> str:
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size} bytes"


def read_text(path: Path, most: int, hint: str = "", pipes: bool = False) -> str:
    r"""Returns the UTF-8 text in a file, its line breaks as ``\n``; arguments and errors as for :func:`read_bytes`.

    Raises:
        UnicodeDecodeError: If it is not UTF-8.
    """
    text = read_bytes(path, most, hint, pipes).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _arriving(descriptor: int, path: Path, most: int, hint: str) -> Iterator[bytes]:
    """Yields what a pipe delivers, until its writer closes it."""
    size, given_up = 0, time.monotonic() + PATIENCE
    while True:
        is_ready = select.select([descriptor], [], [], max(0.0, given_up - time.monotonic()))[0]
        chunk = os.read(descriptor, _AT_ONCE) if is_ready else b""
        if chunk:
            size, given_up = size + len(chunk), time.monotonic() + PATIENCE
            if size > most:
                raise ConfigError(f"{path} delivers more than {_sized(most)}.", hint)
            yield chunk
        elif is_ready and size:
            return
        elif time.monotonic() >= given_up:
            raise ConfigError(f"Nothing has arrived from the pipe {path} for {PATIENCE:g} s.", hint)
        else:
            time.sleep(0.01)  # no writer has opened it yet: reading answers at once, with nothing


def text_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yields the lines of a file.

    Raises:
        DataError: If one is longer than any text.
    """
    while line := file.readline(MAX_TEXT + 1):
        if len(line) > MAX_TEXT:
            raise DataError(f"{path} has a line of more than {MAX_TEXT // 2**20} MiB, which is not one text.")
        yield line
