"""Shows the progress of long work on stderr: a bar on a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ropectl.cli.output import is_main_process, say, stderr_console
from ropectl.reporter import Reporter

#: Least time between two lines about training in a log [seconds].
LOG_EVERY = 10.0


class BarReporter(Reporter):
    """Shows a bar with rate and remaining time, and notes above it; silent off the main process.

    Args:
        label: The prefix of notes, where there are several pieces of work.
    """

    def __init__(self, label: str = "") -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        super().__init__()
        self._label = f"{label}: " if label else ""
        self._console = stderr_console()
        self._speaks = is_main_process()
        self._live = self._console.is_terminal and self._speaks
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._live,
        )
        self._part: Any = None
        self._training: Any = None
        self._unit, self._began, self._done, self._cost = "tokens", 0.0, 0, 1.0
        self._method = ""
        self._steps, self._last_line = 0, 0.0

    def __enter__(self) -> BarReporter:
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        """Prints a note above the bar."""
        if self._speaks:
            say(self._console, f"note: {self._label}{text}")

    def start(self, what: str, total: float = 0.0, unit: str = "tokens") -> None:
        """Begins a new bar; it only pulses where the total is unknown."""
        self._progress.start()  # not earlier: until here the bars of loading weights use the screen
        self._end_part()
        self._part = self._progress.add_task(what, total=total or None, state="")
        self._unit, self._began, self._done, self._cost = unit, time.monotonic(), 0, 1.0

    def cell(self, method: str, part: str, cost_per_token: float = 1.0) -> None:
        """Shows what is measured next; in a log, once for each method."""
        self._cost = cost_per_token
        if self._live:
            self._progress.update(self._part, description=f"{method} {part}")
        elif method != self._method and self._speaks:
            say(self._console, f"measuring {method}")
        self._method = method

    def advance(self, amount: int) -> None:
        """Moves the bar, and shows the rate."""
        if self._part is None:
            return
        self._done += amount
        rate = self._done / max(time.monotonic() - self._began, 1e-3)
        task = next(task for task in self._progress.tasks if task.id == self._part)
        share = f"{task.percentage:.0f}% " if task.total else ""
        state = f"{rate / 1e6:,.0f} MB/s" if self._unit == "bytes" else f"{rate:,.0f} {self._unit}/s"
        self._progress.update(self._part, advance=amount * self._cost, state=share + state)

    def steps(self, total: int, done: int) -> None:
        """Begins the bar of the training steps."""
        self._end_part()
        self._steps = total
        self._progress.start()
        self._training = self._progress.add_task("training", total=total, completed=done, state="")

    def step(self, metrics: Mapping[str, Any]) -> None:
        """Shows a finished step; in a log, only some of them."""
        self._end_part()
        step = metrics["step"]
        state = f"{step}/{self._steps} loss {metrics['loss']:.3f} {metrics['tokens_per_second']:,.0f} tokens/s"
        self._progress.update(self._training, completed=step, state=state)
        is_due = time.monotonic() - self._last_line > LOG_EVERY or step == self._steps
        if self._speaks and not self._live and is_due:
            self._last_line = time.monotonic()
            say(self._console, f"step {state}")

    def validation(self, metrics: Mapping[str, Any]) -> None:
        """Prints what a validation measured."""
        self._end_part()
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

    @contextmanager
    def nested(self, label: str) -> Iterator[Reporter]:
        """Stops the bar, so that a training can use the screen."""
        self._progress.stop()
        with BarReporter(label) as reporter:
            yield reporter

    def _end_part(self) -> None:
        if self._part is not None:
            self._progress.remove_task(self._part)
            self._part = None
