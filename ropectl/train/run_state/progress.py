"""The progress of a run, as its states keep it, and its metrics, step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.file_reading import MAX_TEXT, read_bytes
from ropectl.json_reading import parse_json


@dataclass
class RunProgress:
    """The part of a saved state that is not weights, optimizer or random states.

    Attributes:
        step: Finished steps.
        tokens: Tokens that were predicted.
        seconds: Time spent in steps [s].
        unscaled: Perplexity of the original model, by length.
        start_score: Score of the validation before the first step.
        best_step: Step of the best validation since then; None before the first.
        best_score: Its score.
        since_best: Validations since then.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    unscaled: dict[int, float] = field(default_factory=dict)
    start_score: list[float] = field(default_factory=list)
    best_step: int | None = None
    best_score: list[float] = field(default_factory=list)
    since_best: int = 0

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunProgress:
        """Returns the progress that a state holds."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        known["unscaled"] = {int(length): value for length, value in known.get("unscaled", {}).items()}
        return cls(**known)

    @property
    def is_at_best(self) -> bool:
        """True if the present weights are the ones to write: no validation chose others."""
        return self.best_step in (None, self.step)

    def forget_best(self) -> None:
        """Forgets the best validation, whose weights are lost."""
        self.best_step, self.best_score, self.since_best = None, [], 0


class MetricsFile:
    """The file of a run's metrics, one JSON object a line; lines of steps that a continued run repeats are removed.

    Args:
        path: The file.
        step: Finished steps of the state that the run continues from.
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
    """Returns the lines of a file of metrics, without one that a kill cut short."""
    records = []
    if path.is_file():
        for line in read_bytes(path, MAX_TEXT).decode(errors="replace").splitlines():
            try:
                record = parse_json(line, str(path))
                if isinstance(record["step"], int):
                    records.append(record)
            except (ConfigError, KeyError, TypeError):
                continue
    return records
