"""Reading the files of a run, checked before they are used: complete JSON, written by ropectl, of this schema version."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.records import SCHEMA_VERSION, MetricsLine
from ropectl.records.reading import read_as

#: Records have a few hundred kilobytes; a larger file than this is something else [bytes].
MAX_BYTES = 64 * 2**20

#: Records are six levels deep.
MAX_DEPTH = 40

#: No count of tokens, bytes or operations is larger, and smaller numbers can be drawn.
MAX_NUMBER = 2**63

#: The hint where something else is named.
WANTED = "Wanted: a run folder, or a JSON file that a ropectl command wrote (-o FILE, or --format json > FILE)."


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file.

    Raises:
        ConfigError: If it cannot be read, or is too large to be a record.
    """
    try:
        if not path.is_file():  # reading a pipe would never end
            raise ConfigError(f"{path} is not a file that can be read.", WANTED)
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ConfigError(
                f"{path} has {size / 2**20:.0f} MiB; no record is larger than {MAX_BYTES / 2**20:.0f} MiB.", WANTED
            )
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror or error}.", WANTED) from None


def read_json(path: Path, hint: str = WANTED) -> Any:
    """Returns the JSON value in a file, with None for NaN and Infinity.

    Args:
        path: The file.
        hint: What to do if it cannot be read.

    Raises:
        ConfigError: If it is not JSON, or too deep or too large for a record.
    """
    try:
        return _checked(json.loads(read_bytes(path)), str(path))
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply for a record.", hint) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a whole JSON file: {error}.", hint) from None
    except ValueError:  # Python refuses to convert longer ones
        raise ConfigError(f"{path} holds a number of thousands of digits, which is not a result.", hint) from None


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Returns the JSON objects in a file: one, or several where a command wrote a list of records.

    Raises:
        ConfigError: If there is none, or one of a newer ropectl.
    """
    content = read_json(path)
    records = content if isinstance(content, list) and content else [content]
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
            yield read_as(MetricsLine, _checked(json.loads(line), str(path)), str(path), "finetune")
        except (ValueError, RecursionError, ConfigError):
            continue


def _checked(value: Any, place: str, depth: int = 0) -> Any:
    """Returns the value with None for numbers that are not finite."""
    if depth > MAX_DEPTH:
        raise ConfigError(f"{place} is nested too deeply for a record.", WANTED)
    if isinstance(value, dict):
        return {key: _checked(item, place, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item, place, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise ConfigError(f"{place} holds a number of {len(str(value))} digits, which is not a result.", WANTED)
    return value
