"""Lets long work tell how far it is; the work does not know who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

#: Called after each forward pass with the number of tokens that it took.
Progress = Callable[[int], None]


def no_progress(tokens: int) -> None:
    """Reports nothing."""


class Reporter:
    """Follows long work. This one shows nothing and keeps the notes; a subclass overrides what it wants to hear of.

    Attributes:
        notes: The notes so far.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Hears something that a person should know."""
        self.notes.append(text)

    def start(self, what: str, total: float = 0.0, unit: str = "tokens") -> None:
        """Hears that a part of the work begins.

        Args:
            what: The part, in words.
            total: How much is to come, in the unit, or in whatever :meth:`cell` says that it counts for; 0 if unknown.
            unit: What :meth:`advance` counts: ``tokens`` or ``bytes``.
        """

    def cell(self, method: str, part: str, cost_per_token: float = 1.0) -> None:
        """Hears that the next measurement of a method begins; each of its tokens counts for so much of the total."""

    def advance(self, amount: int) -> None:
        """Hears that this much more is done, in the unit of the part."""

    def steps(self, total: int, done: int) -> None:
        """Hears that training steps begin, some of which are done already."""

    def step(self, metrics: Mapping[str, Any]) -> None:
        """Hears that a training step is finished."""

    def validation(self, metrics: Mapping[str, Any]) -> None:
        """Hears that a validation is finished."""

    @contextmanager
    def nested(self, label: str) -> Iterator[Reporter]:
        """Yields the reporter of one training among other work: this one hears its notes, each with the label."""
        yield _Notes(self, label)


class _Notes(Reporter):
    """Passes on the notes of nested work, and nothing else."""

    def __init__(self, outer: Reporter, label: str) -> None:
        super().__init__()
        self._outer, self._label = outer, label

    def note(self, text: str) -> None:
        self._outer.note(f"{self._label}: {text}")
