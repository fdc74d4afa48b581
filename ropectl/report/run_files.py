"""Reading the files of a run, checked before they are used: complete JSON, written by ropectl, of this schema version."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ropectl import file_reading, json_reading
from ropectl.errors import ConfigError
from ropectl.records import SCHEMA_VERSION, MetricsLine
from ropectl.records.reading import read_as

#: No count of tokens, bytes or operations is larger, and smaller numbers can be drawn.
MAX_NUMBER = 2**63

#: The hint where something else is named.
WANTED = "Wanted: a run folder, or a JSON file that a ropectl command wrote (-o FILE, or --format json > FILE)."


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file, a pipe included.

    Raises:
        ConfigError: If it cannot be read, or is too large to be a record.
    """
    return file_reading.read_bytes(path, json_reading.MAX_JSON, WANTED, pipes=True)


def read_json(path: Path, hint: str = WANTED) -> Any:
    """Returns the JSON value in a file, with None for NaN and Infinity.

    Args:
        path: The file.
        hint: What to do if it cannot be read.

    Raises:
        ConfigError: If it is not JSON, or too deep or too large for a record.
    """
    return _checked(json_reading.read_json(path, hint=hint), str(path))


def read_objects(path: Path, content: bytes | None = None) -> list[dict[str, Any]]:
    """Returns the JSON objects in a file: one, or several where a command wrote a list of records.

    Args:
        path: The file.
        content: Its content, where that was read already.

    Raises:
        ConfigError: If there is none, or one of a newer ropectl.
    """
    found = (
        read_json(path) if content is None else _checked(json_reading.parse_json(content, str(path), WANTED), str(path))
    )
    records = found if isinstance(found, list) and found else [found]
    if not all(isinstance(record, dict) for record in records):
        raise ConfigError(f"{path} holds no record of ropectl.", WANTED)
    for record in records:
        check_version(record, path)
    return records


def check_version(record: Mapping[str, Any], path: Path) -> None:
    """Checks that a record has the schema that this version reads.

    Raises:
        ConfigError: If it is of another schema.
    """
    version = record.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        raise ConfigError(
            f"{path} has schema_version {str(version)[:20]!r}; this ropectl reads {SCHEMA_VERSION}.",
            "It was written by a newer ropectl: update this one." if newer else WANTED,
        )


def read_metrics(path: Path) -> list[MetricsLine]:
    """Returns the lines of a file of metrics, without those that were cut off when the run was killed.

    Raises:
        ConfigError: If the file exists and cannot be read.
    """
    return list(_lines(path)) if path.is_file() else []


def _lines(path: Path) -> Iterator[MetricsLine]:
    for line in read_bytes(path).decode("utf-8", "replace").split("\n"):
        try:
            yield read_as(
                MetricsLine, _checked(json_reading.parse_json(line, str(path)), str(path)), str(path), "finetune"
            )
        except ConfigError:
            continue


def _checked(value: Any, place: str) -> Any:
    """Returns the value with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: _checked(item, place) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item, place) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise ConfigError(f"{place} holds a number of {len(str(value))} digits, which is not a result.", WANTED)
    return value
