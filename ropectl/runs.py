"""Run folders: records under content-addressed names, written to a temporary file and then renamed.

Killed at any moment, a run leaves only complete records. A record is found again by the settings that decide its
content, so an interrupted run continues, and changed settings never mix with old results.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

from ropectl.errors import ConfigError
from ropectl.file_reading import other_kind
from ropectl.json_reading import read_object
from ropectl.names import shown_names
from ropectl.records import SCHEMA_VERSION

_PACKAGES = ("ropectl", "torch", "transformers", "tokenizers", "accelerate")
CELLS_FOLDER, PLAN_FILE, COMPARISON_FILE = "cells", "plan.json", "comparison.json"

#: Files that mark a folder as a checkpoint or an adapter.
_MODEL_FILES = ("config.json", "adapter_config.json")


def canonical_json(value: Any) -> str:
    """Returns the one JSON text of a value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_id(settings: Any) -> str:
    """Returns a short name that differs whenever the settings do: 16 hex digits of their SHA-256."""
    return hashlib.sha256(canonical_json({"schema": SCHEMA_VERSION, "settings": settings}).encode()).hexdigest()[:16]


def package_versions(more: Sequence[str] = ()) -> dict[str, str]:
    """Returns the versions that decide numbers, and those of further packages."""
    versions = {"python": platform.python_version()}
    for package in (*_PACKAGES, *more):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def command_line() -> list[str]:
    """Returns the command as typed, with the program's name in place of its path."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def write_json(path: Path, value: Any, allow_nan: bool = False) -> None:
    """Writes a JSON file that is either complete or absent.

    Args:
        path: The file.
        value: Its content.
        allow_nan: Keep NaN and Infinity, which are not JSON but occur in files of other programs.

    Raises:
        ConfigError: If the folder cannot be written.
    """
    with written_aside(path) as file:
        file.write((json.dumps(value, indent=2, allow_nan=allow_nan) + "\n").encode())


@contextmanager
def written_aside(path: Path, hint: str = "Choose another place: --out PATH") -> Iterator[BinaryIO]:
    """Yields a file to write to that gets its name only once it is complete; no failure leaves anything behind.

    Args:
        path: The name; an existing file is replaced.
        hint: A suggestion what to type where it cannot be written.

    Raises:
        ConfigError: If it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:  # after Ctrl-C too, nothing half written may be left
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ConfigError(f"Cannot write {path}: {error.strerror or error}.", hint) from None
        raise


def check_output(path: Path, hint: str = "Choose another place: --out PATH") -> None:
    """Checks that a result may be written to a path: nothing is there, or an ordinary file.

    Raises:
        ConfigError: If something else is: to replace a device or the end of a link is never meant.
    """
    if kind := other_kind(path):
        raise ConfigError(f"{path} is {kind}; the result is one file.", hint)


def check_writable(folder: Path) -> None:
    """Checks that files can be created in a folder, or in the nearest existing one above it; leaves nothing there.

    Raises:
        ConfigError: If they cannot.
    """
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise ConfigError(
            f"Cannot write to {folder}: {error.strerror or error}.", "Choose another place: --out PATH"
        ) from None


class RunFolder:
    """The folder of one run.

    Args:
        path: The folder, which is created when the first record is written.
    """

    def __init__(self, path: Path) -> None:
        hint = "Choose another place: --out PATH"
        kind = other_kind(path) or "a file"
        if os.path.lexists(path) and not path.is_dir():
            raise ConfigError(f"{path} is {kind}; a run needs a folder.", hint)
        names = {each.name for each in path.iterdir() if not each.name.startswith(".")} if path.is_dir() else set()
        if models := sorted(name for name in names if name in _MODEL_FILES or name.endswith(".safetensors")):
            raise ConfigError(f"{path} is the folder of a model: it holds {models[0]}. A run needs its own.", hint)
        if names and not names & {CELLS_FOLDER, PLAN_FILE, COMPARISON_FILE}:
            raise ConfigError(
                f"{path} holds files that are not of a run, such as {shown_names(sorted(names), 1)}.", hint
            )
        self.path = path

    def cell_path(self, settings: Mapping[str, Any]) -> Path:
        """Returns where the record with these settings belongs."""
        return self.path / CELLS_FOLDER / f"{content_id(settings)}.json"

    def read_cell(self, settings: Mapping[str, Any], failed: bool = False) -> dict[str, Any] | None:
        """Returns the finished record with these settings, or None.

        A file that is not a complete record counts as none and will be replaced.

        Args:
            settings: The settings that name the record.
            failed: Whether to return the record of a failure too.
        """
        try:
            record = read_object(self.cell_path(settings), allow_nan=False)
        except ConfigError:
            return None
        is_whole = "result" in record and "error" not in record
        return record if is_whole or (failed and "error" in record) else None

    def write_cell(self, settings: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Writes a record: settings, outcome (``result`` or ``error``, ``seconds``) and environment; returns it."""
        record = {
            "schema_version": SCHEMA_VERSION,
            "id": content_id(settings),
            "settings": dict(settings),
            **outcome,
            "versions": package_versions(),
        }
        write_json(self.cell_path(settings), record)
        return record

    def keep(self, settings: Mapping[str, Any], record: dict[str, Any]) -> None:
        """Writes a record that another process made, unless it is here already."""
        if self.read_cell(settings, failed=True) != record:
            write_json(self.cell_path(settings), record)
