"""Who is told how training goes; the loop does not know who that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class TrainReporter(Protocol):
    """Listens to a run."""

    def note(self, text: str) -> None:
        """Something a person should know."""

    def phase(self, what: str, total: int = 0) -> None:
        """A part begins, with so many tokens to come; 0 where that is not known."""

    def advance(self, tokens: int) -> None:
        """Tokens of the part are done."""

    def training(self, steps: int, done: int) -> None:
        """Training begins, some steps being done already."""

    def step(self, metrics: Mapping[str, Any]) -> None:
        """A step is finished."""

    def validation(self, metrics: Mapping[str, Any]) -> None:
        """A validation is finished."""


@dataclass
class SilentTrainReporter:
    """Keeps notes, prints nothing."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keeps the note."""
        self.notes.append(text)

    def phase(self, what: str, total: int = 0) -> None:
        """Ignores it."""

    def advance(self, tokens: int) -> None:
        """Ignores it."""

    def training(self, steps: int, done: int) -> None:
        """Ignores it."""

    def step(self, metrics: Mapping[str, Any]) -> None:
        """Ignores it."""

    def validation(self, metrics: Mapping[str, Any]) -> None:
        """Ignores it."""
