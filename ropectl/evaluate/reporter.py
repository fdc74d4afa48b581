"""Who is told how a measurement goes; the measurements do not know who that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class Reporter(Protocol):
    """Listens to a measurement."""

    def note(self, text: str) -> None:
        """Something a person should know."""

    def start(self, total: float) -> None:
        """Measuring begins, with this much to come: tokens, or whatever else ``cell`` says a token counts for."""

    def cell(self, method: str, part: str, cost_per_token: float = 1.0) -> None:
        """The next part of the measurements of a method begins; each of its tokens counts for so much of the total."""

    def advance(self, tokens: int) -> None:
        """Tokens went through the model."""


@dataclass
class SilentReporter:
    """Keeps notes, prints nothing."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keeps the note."""
        self.notes.append(text)

    def start(self, total: float) -> None:
        """Ignores it."""

    def cell(self, method: str, part: str, cost_per_token: float = 1.0) -> None:
        """Ignores it."""

    def advance(self, tokens: int) -> None:
        """Ignores it."""
