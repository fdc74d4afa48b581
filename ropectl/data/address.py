"""How a text source is written: ``NAME:SPLIT#FIELD``, where a file of exactly that name wins."""

from __future__ import annotations

from pathlib import Path


def split_off(address: str, separator: str) -> tuple[str, str]:
    """Returns what stands before and behind the last separator; behind it nothing where it is part of a path.

    It is part of a path where that path exists as it is written (``notes#1.txt``), or where a slash comes
    later (``https://host/x``, ``C:\\texts``, ``a#b/*.txt``).
    """
    name, found, rest = address.rpartition(separator)
    if not found or "/" in rest or "\\" in rest or exists(address):
        return address, ""
    return name, rest


def exists(name: str) -> bool:
    """Returns whether there is a file or folder of this name."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, RuntimeError, ValueError):  # too long a name, no such user, a null byte
        return False


def file_stamps(paths: list[Path]) -> list[list[str | int]]:
    """Returns what tells one state of files from another: path, size [bytes] and time of change [ns] of each."""
    stats = [(path, path.stat()) for path in paths]
    return [[str(path.absolute()), stat.st_size, stat.st_mtime_ns] for path, stat in stats]


def visible_files(folder: Path) -> list[Path]:
    """Returns all files under a folder in a stable order; hidden files and folders are left out."""
    return sorted(
        found
        for found in folder.rglob("*")
        if found.is_file() and not any(part.startswith(".") for part in found.relative_to(folder).parts)
    )
