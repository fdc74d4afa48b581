"""Splits text sources ``NAME[,CONFIG][:SPLIT][#FIELD]``; an existing file or folder of exactly that name wins."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class Address(NamedTuple):
    """The parts of a text source; empty where not given."""

    name: str
    config: str
    split: str
    field: str


#: The part that each separator begins. No part contains a slash: ``https://host/x``, ``C:\\texts`` and ``a#b/*.txt`` are names.
_PARTS = {",": r"(?:,(?P<config>[^,:#/\\]*))?", ":": r"(?::(?P<split>[^#/\\]*))?", "#": r"(?:#(?P<field>[^/\\]*))?"}


def parse_address(text: str, separators: str) -> Address:
    """Returns the parts of ``NAME[,CONFIG][:SPLIT][#FIELD]``.

    The name is the longest prefix that exists as a file or folder, whatever its characters; where
    none does, it ends at the first separator that begins a part.

    Args:
        text: What was typed.
        separators: Those of ``,:#`` that have a meaning here.
    """
    parts = "".join(pattern for separator, pattern in _PARTS.items() if separator in separators)
    ends = [len(text), *(place for place in range(len(text) - 1, 0, -1) if text[place] in separators)]
    for end in ends:
        found = re.fullmatch(parts, text[end:], re.DOTALL)
        if found and exists(text[:end]):
            name = str(expand(text[:end]))
            break
    else:
        found = re.fullmatch(f"(?P<name>.*?){parts}", text, re.DOTALL)
        assert found is not None, "the name alone always fits"
        name = found["name"]
    return Address(name, *(found.groupdict().get(part) or "" for part in Address._fields[1:]))


def expand(name: str) -> Path:
    """Returns a path with ``~`` replaced, where there is such a user."""
    with suppress(RuntimeError):
        return Path(name).expanduser()
    return Path(name)


def exists(name: str) -> bool:
    """Returns whether there is a file or folder of this name."""
    try:
        return bool(name) and expand(name).exists()
    except (OSError, ValueError):  # too long a name, a null byte
        return False


def file_stamps(paths: list[Path]) -> list[list[str | int]]:
    """Returns what identifies one state of files: path, size [bytes] and time of change [ns] of each."""
    stats = [(path, path.stat()) for path in paths]
    return [[os.path.abspath(path), stat.st_size, stat.st_mtime_ns] for path, stat in stats]  # noqa: PTH100 (resolve would follow links)


def visible_files(folder: Path) -> list[Path]:
    """Returns all files under a folder in a stable order, except for hidden files and folders."""
    return sorted(
        found
        for found in folder.rglob("*")
        if found.is_file() and not any(part.startswith(".") for part in found.relative_to(folder).parts)
    )
