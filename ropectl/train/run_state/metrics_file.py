"""The metrics of a run in a file, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MetricsFile:
    """One JSON object a line, for programs; what a continued run does again is taken out first.

    Args:
        path: The file.
        step: Finished steps of the state that the run goes on from.
    """

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        kept = [line for line in read_metrics(path) if line["step"] <= step]
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text("".join(json.dumps(line) + "\n" for line in kept))
        temporary.replace(path)

    def write(self, record: Mapping[str, Any]) -> None:
        """Adds a line."""
        with self._path.open("a") as file:
            file.write(json.dumps(dict(record)) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a file of metrics; one that a kill cut short is left out."""
    records = []
    if path.is_file():
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
                if isinstance(record["step"], int):
                    records.append(record)
            except (ValueError, KeyError, TypeError):
                continue
    return records
