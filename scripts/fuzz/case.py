"""A bad invocation: a command, the files around it, what is wrong, and what has to come of it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

#: The kinds of cases: each is one way to go wrong.
KINDS = {
    1: "weights that do not belong to their config",
    2: "what a config says",
    3: "options that change nothing, blank and malformed text",
    4: "special files where ordinary ones belong",
    5: "results among other files",
    6: "damaged files and absurd numbers",
}


class Expected(str, Enum):
    """What has to come of an invocation."""

    refused = "refused"  #: exit code 2 and one message
    noted = "noted"  #: done, with a note or a warning that names what is odd
    told = "told"  #: one of the two
    accepted = "accepted"  #: done: nothing is wrong


@dataclass(frozen=True)
class Step:
    """Makes files in a case's folder.

    Attributes:
        name: What it makes; part of what tells cases apart.
        make: Makes it, given the folder.
    """

    name: str
    make: Callable[[Path], None] = field(compare=False, repr=False)


@dataclass(frozen=True)
class Case:
    """One invocation.

    Attributes:
        kind: The key in ``KINDS``.
        command: The command of ropectl.
        args: What follows it.
        wrong: What is wrong, in one line.
        steps: What is made in the folder before.
        expected: What has to come of it.
        mentions: Words that the message has to have; ``a|b`` for either.
    """

    kind: int
    command: str
    args: tuple[str, ...]
    wrong: str
    steps: tuple[Step, ...] = ()
    expected: Expected = Expected.refused
    mentions: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[Any, ...]:
        """What no other case shares."""
        return self.command, self.args, tuple(step.name for step in self.steps)

    @property
    def line(self) -> str:
        """The invocation as one line, shortened."""
        return shown(("ropectl", self.command, *self.args))


def shown(words: Iterable[str], longest: int = 60) -> str:
    """Returns a command line in one line, with every long word shortened."""
    texts = [word if word.isprintable() and word.strip() and " " not in word else repr(word) for word in words]
    return " ".join(text if len(text) <= longest else f"{text[:longest]}...({len(text)})" for text in texts)


def file(path: str, content: str | bytes, name: str = "") -> Step:
    """A file with this content."""

    def make(folder: Path) -> None:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)

    return Step(name or f"{path} = {content[:80]!r}", make)


def json_file(path: str, value: Any) -> Step:
    """A JSON file; NaN and Infinity are written as Python does."""
    return file(path, json.dumps(value), f"{path} = {str(value)[:120]}")


def changed_json(path: str, change: Callable[[Any], Any], name: str) -> Step:
    """A JSON file with a change made to it; ``change`` may return a new value."""

    def make(folder: Path) -> None:
        value = json.loads((folder / path).read_text())
        (folder / path).write_text(json.dumps(change(value) or value))

    return Step(f"{path}: {name}", make)


def also_at(path: str, source: str) -> Step:
    """A copy of a folder of the case."""
    return Step(
        f"{path} is a copy of {source}", lambda folder: shutil.copytree(folder / source, folder / path) and None
    )


def removed(path: str) -> Step:
    """Takes a file or folder away."""

    def make(folder: Path) -> None:
        place = folder / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    return Step(f"without {path}", make)


def _at(folder: Path, path: str) -> Path:
    """Returns a place for something special, with whatever stood there removed."""
    removed(path).make(folder)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    return folder / path


def pipe(path: str) -> Step:
    """A named pipe, which a reader waits for without end."""
    return Step(f"{path} is a pipe", lambda folder: os.mkfifo(_at(folder, path)))


def link(path: str, target: str) -> Step:
    """A symbolic link."""
    return Step(f"{path} -> {target}", lambda folder: _at(folder, path).symlink_to(target))


def directory(path: str) -> Step:
    """An empty folder."""
    return Step(f"{path} is a folder", lambda folder: _at(folder, path).mkdir())


def unreadable(path: str) -> Step:
    """Takes away all permissions, which root does not feel."""
    return Step(f"{path} is unreadable", lambda folder: (folder / path).chmod(0))


def sparse(path: str, size: int = 100 * 2**30) -> Step:
    """A file that is large and takes no room."""

    def make(folder: Path) -> None:
        with _at(folder, path).open("wb") as opened:
            opened.truncate(size)

    return Step(f"{path} has {size} bytes", make)


def listening(path: str) -> Step:
    """A socket."""

    def make(folder: Path) -> None:
        place = _at(folder, path)
        before = os.open(".", os.O_RDONLY)  # the name of a socket is short: it is made from its own folder
        try:
            os.chdir(place.parent)
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(place.name)
        finally:
            os.fchdir(before)
            os.close(before)

    return Step(f"{path} is a socket", make)


def device(path: str, name: str) -> Step:
    """A device: ``null``, ``zero`` or ``full``. Root could replace the system's own, so it gets one to itself."""

    def make(folder: Path) -> None:
        place = _at(folder, path)
        if os.geteuid() == 0:
            os.mknod(place, 0o666 | stat.S_IFCHR, (Path("/dev") / name).stat().st_rdev)
        else:
            place.symlink_to(f"/dev/{name}")

    return Step(f"{path} is the device {name}", make)
