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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

from ropectl.errors import ConfigError
from ropectl.file_reading import reason_of
from ropectl.json_reading import read_object
from ropectl.output_places import ANOTHER_PLACE, CELLS_FOLDER, check_run_folder
from ropectl.records import SCHEMA_VERSION

_PACKAGES = ("ropectl", "torch", "transformers", "tokenizers", "accelerate")


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
def written_aside(path: Path, hint: str = ANOTHER_PLACE) -> Iterator[BinaryIO]:
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
            raise ConfigError(f"Cannot write {path}: {reason_of(error)}.", hint) from None
        raise


class RunFolder:
    """The folder of one run.

    Args:
        path: The folder, which is created when the first record is written.
    """

    def __init__(self, path: Path) -> None:
        check_run_folder(path)
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
