"""Who is told how a comparison goes: measurements as everywhere, and trainings by a listener of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, runtime_checkable

from ropectl.evaluate.reporter import Reporter
from ropectl.train.reporter import SilentTrainReporter, TrainReporter


@runtime_checkable
class TrainingListener(Protocol):
    """A reporter that also follows trainings."""

    def training(self, label: str) -> AbstractContextManager[TrainReporter]:
        """The training of a method begins; it ends with the context."""


@contextmanager
def training_reporter(reporter: Reporter, label: str) -> Iterator[TrainReporter]:
    """Yields the listener of one training, its notes prefixed by the method.

    A reporter that does not follow trainings is told their notes.

    Args:
        reporter: The comparison's.
        label: What is trained.
    """
    if isinstance(reporter, TrainingListener):
        with reporter.training(label) as listener:
            yield _Labelled(listener, label)
    else:
        yield _Labelled(_NotesOnly(reporter), label)


class _NotesOnly(SilentTrainReporter):
    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def note(self, text: str) -> None:
        self._reporter.note(text)


class _Labelled:
    """Passes everything on, and says with each note what it is about."""

    def __init__(self, listener: TrainReporter, label: str) -> None:
        self._listener, self._label = listener, label

    def note(self, text: str) -> None:
        self._listener.note(f"{self._label}: {text}")

    def phase(self, what: str, total: int = 0) -> None:
        self._listener.phase(what, total)

    def advance(self, tokens: int) -> None:
        self._listener.advance(tokens)

    def training(self, steps: int, done: int) -> None:
        self._listener.training(steps, done)

    def step(self, metrics: Mapping[str, Any]) -> None:
        self._listener.step(metrics)

    def validation(self, metrics: Mapping[str, Any]) -> None:
        self._listener.validation(metrics)
