"""What a training run shows while it goes: a bar with loss, rate and remaining time, or lines in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ropectl.cli.output import say
from ropectl.cli.progress import BarReporter, ProgressReporter

#: In a log, a line at most every so many seconds.
LOG_EVERY = 10.0


class ComparisonReporter(ProgressReporter):
    """Tells a person how a comparison goes that also trains."""

    @contextmanager
    def training(self, label: str) -> Iterator[TrainingReporter]:
        """Gives the screen to a training."""
        self._progress.stop()
        with TrainingReporter() as reporter:
            yield reporter


class TrainingReporter(BarReporter):
    """Tells a person how training goes; silent off the main process."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
        )
        self._phase: Any = None
        self._last_line = 0.0
        self._steps = 0

    def phase(self, what: str, total: int = 0) -> None:
        """Begins a part that is no step."""
        self._progress.start()
        if self._phase is not None:
            self._progress.remove_task(self._phase)
        self._phase = self._progress.add_task(what, total=total or None, state="")

    def advance(self, tokens: int) -> None:
        """Counts tokens of the part."""
        if self._phase is not None:
            self._progress.advance(self._phase, tokens)

    def training(self, steps: int, done: int) -> None:
        """Begins the steps."""
        self._end_phase()
        self._steps = steps
        self._progress.start()
        self._task = self._progress.add_task("training", total=steps, completed=done, state="")

    def step(self, metrics: Mapping[str, Any]) -> None:
        """Shows a finished step."""
        self._end_phase()
        state = (
            f"{metrics['step']}/{self._steps} loss {metrics['loss']:.3f} {metrics['tokens_per_second']:,.0f} tokens/s"
        )
        self._progress.update(self._task, completed=metrics["step"], state=state)
        is_due = time.monotonic() - self._last_line > LOG_EVERY or metrics["step"] == self._steps
        if self._speaks and not self._live and is_due:
            self._last_line = time.monotonic()
            say(self._console, f"step {state}")

    def validation(self, metrics: Mapping[str, Any]) -> None:
        """Shows a finished validation."""
        self._end_phase()
        if not self._speaks:
            return
        measured = metrics["validation"]
        numbers = [f"{length}: {value:.2f}" for length, value in measured["perplexity"].items()]
        text = f"step {metrics['step']}, held-out perplexity {', '.join(numbers)}"
        if measured["passkey"]:
            text += "; passkeys " + ", ".join(f"{n}: {value:.0%}" for n, value in measured["passkey"].items())
        if measured["short_delta"] is not None:
            text += f"; short text {measured['short_delta']:+.1%}"
        say(self._console, text + ("; best so far" if metrics["best"] else ""))

    def _end_phase(self) -> None:
        if self._phase is not None:
            self._progress.remove_task(self._phase)
            self._phase = None
