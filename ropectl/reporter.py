"""Reports the progress of long work, which does not know who listens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ropectl.timing.operations import Cost


class Reporter:
    """Follows long work. This class shows nothing and keeps the notes; a subclass overrides what it shows.

    Attributes:
        notes: All notes until now.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Takes a note that a person should read."""
        self.notes.append(text)

    def start(self, what: str, total: float = 0.0, unit: str = "tokens", cost: Cost | None = None) -> None:
        """Begins a part of the work.

        Args:
            what: The part, in words.
            total: Its amount; 0 if unknown.
            unit: The unit of ``total`` and of :meth:`advance`: ``tokens`` or ``bytes``.
            cost: What all of it costs; by default each unit as much as any other.
        """

    def cell(self, method: str, part: str, cost: Cost) -> None:
        """Begins the next measurement of a method, which is expected to cost so much; the one before is over."""

    def advance(self, amount: int, cost: Cost | None = None) -> None:
        """Adds to what is done, in the unit of the part, and what that cost."""

    def steps(self, total: int, done: int) -> None:
        """Begins the training steps, of which some may be done already."""

    def step(self, metrics: Mapping[str, Any]) -> None:
        """Takes the numbers of a finished training step."""

    def validation(self, metrics: Mapping[str, Any]) -> None:
        """Takes the results of a finished validation."""

    @contextmanager
    def nested(self, label: str) -> Iterator[Reporter]:
        """Yields a reporter for one training among other work, whose notes come here, each with the label."""
        yield _Notes(self, label)


class _Notes(Reporter):
    """A reporter that passes on the notes of nested work, and nothing else."""

    def __init__(self, outer: Reporter, label: str) -> None:
        super().__init__()
        self._outer, self._label = outer, label

    def note(self, text: str) -> None:
        self._outer.note(f"{self._label}: {text}")
