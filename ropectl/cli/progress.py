"""Shows the progress of long work on stderr: a bar on a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ropectl.cli.output import is_main_process, say, stderr_console
from ropectl.reporter import Reporter
from ropectl.timing.durations import duration, duration_range
from ropectl.timing.operations import NOTHING, Cost
from ropectl.timing.pace import Pace

#: Least time between two lines in a log [seconds]: about training, and about other long work.
LOG_EVERY, LINE_EVERY = 10.0, 30.0

#: Least time between two estimates of what remains, which take some milliseconds [seconds].
_ESTIMATE_EVERY = 1.0


class BarReporter(Reporter):
    """Shows a bar with rate and remaining time, and notes above it; in a log, a line every half minute instead.

    Silent off the main process.

    Args:
        label: The prefix of notes, where there are several pieces of work.
        clock: Returns the time [s].
    """

    def __init__(self, label: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        super().__init__()
        self._label = f"{label}: " if label else ""
        self._console = stderr_console()
        self._speaks = is_main_process()
        self._live = self._console.is_terminal and self._speaks
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            transient=True,
            disable=not self._live,
        )
        self._part: Any = None
        self._training: Any = None
        self._clock, self._what, self._unit = clock, "", "tokens"
        self._pace, self._amount = Pace(NOTHING, clock), 0
        self._rest, self._estimated = "", clock()
        self._methods: set[str] = set()
        self._steps, self._last_line, self._steps_pace = 0, 0.0, Pace(NOTHING, clock)

    def __enter__(self) -> BarReporter:
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        """Prints a note above the bar."""
        if self._speaks:
            say(self._console, f"note: {self._label}{text}")

    def start(self, what: str, total: float = 0.0, unit: str = "tokens", cost: Cost | None = None) -> None:
        """Begins a new bar; it only pulses where the total is unknown."""
        self._progress.start()  # not earlier: until here the bars of loading weights use the screen
        self._end_part()
        self._what, self._unit, self._amount = what, unit, 0
        self._pace = Pace(Cost(weights=total) if cost is None else cost, self._clock)
        self._rest, self._estimated, self._last_line = "", self._clock(), self._clock()
        self._part = self._progress.add_task(what, total=1.0 if self._pace.total.total else None, state="")

    def cell(self, method: str, part: str, cost: Cost) -> None:
        """Shows what is measured next; in a log, once for each method."""
        self._pace.begin(cost)
        self._what = f"{method} {part}"
        if self._live:
            self._progress.update(self._part, description=self._what)
        elif method not in self._methods and self._speaks:
            say(self._console, f"measuring {method}")
        self._methods.add(method)

    def advance(self, amount: int, cost: Cost | None = None) -> None:
        """Moves the bar, and shows rate and remaining time; in a log, every half minute."""
        if self._part is None:
            return
        self._amount += amount
        self._pace.advance(Cost(weights=amount) if cost is None else cost)
        now = self._clock()
        if self._live:
            if now - self._estimated >= _ESTIMATE_EVERY:
                self._rest, self._estimated = _left(self._pace), now
            rate = self._amount / max(self._pace.elapsed, 1e-3)
            speed = f"{rate / 1e6:,.0f} MB/s" if self._unit == "bytes" else f"{rate:,.0f} {self._unit}/s"
            state = ", ".join(filter(None, [self._share(), speed, self._rest]))
            self._progress.update(self._part, completed=self._pace.share, state=state)
        elif self._speaks and now - self._last_line >= LINE_EVERY:
            self._last_line = now
            say(self._console, f"{self._what}: {self._line()}")

    def _share(self) -> str:
        return f"{self._pace.share:.0%}" if self._pace.total.total else ""

    def _line(self) -> str:
        """Returns what a log is told: how much is done, how long it took, how long the rest will take."""
        done = self._share() or f"{self._amount:,} {self._unit}"
        spent = f"{duration(self._pace.elapsed)} elapsed"
        return ", ".join(filter(None, [f"{done} done", spent, _left(self._pace)]))

    def steps(self, total: int, done: int) -> None:
        """Begins the bar of the training steps."""
        self._end_part()
        self._steps, self._steps_pace = total, Pace(Cost(weights=total - done), self._clock)
        self._progress.start()
        self._training = self._progress.add_task("training", total=total, completed=done, state="")

    def step(self, metrics: Mapping[str, Any]) -> None:
        """Shows a finished step; in a log, only some of them."""
        self._end_part()
        step = metrics["step"]
        self._steps_pace.advance(Cost(weights=1))
        state = f"{step}/{self._steps} loss {metrics['loss']:.3f} {metrics['tokens_per_second']:,.0f} tokens/s"
        if step < self._steps:
            state += f", {_left(self._steps_pace)}"
        self._progress.update(self._training, completed=step, state=state)
        is_due = self._clock() - self._last_line > LOG_EVERY or step == self._steps
        if self._speaks and not self._live and is_due:
            self._last_line = self._clock()
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


def _left(pace: Pace) -> str:
    """Returns how long the rest will take; empty if that is not known."""
    span = pace.remaining()
    return "" if span is None else f"{duration_range(span)} left"
