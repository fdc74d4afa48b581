"""How far long work is, on stderr."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from ropectl.cli.output import is_main_process, say, stderr_console

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Reporter = TypeVar("Reporter", bound="BarReporter")


class BarReporter:
    """A bar on a terminal, notes above it; silent off the main process.

    Args:
        columns: What the bar shows.
    """

    def __init__(self, *columns: ProgressColumn) -> None:
        from rich.progress import Progress

        self._console = stderr_console()
        self._speaks = is_main_process()
        self._live = self._console.is_terminal and self._speaks
        self._progress = Progress(*columns, console=self._console, transient=True, disable=not self._live)
        self._task: Any = None

    def __enter__(self: Reporter) -> Reporter:
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        """Prints a note above the bar."""
        if self._speaks:
            say(self._console, f"note: {text}")


class ProgressReporter(BarReporter):
    """Shows how far a measurement is: a bar with rate and remaining time, or a line per cell in a log."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._method = ""
        self._cost_per_token = 1.0
        self._started, self._tokens = 0.0, 0

    def start(self, total: float) -> None:
        """Sets how much is to come."""
        self._progress.start()  # not before: until here the bars of loading weights have the screen
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task("measuring", total=total, rate="")
        self._started, self._tokens = time.monotonic(), 0

    def cell(self, method: str, part: str, cost_per_token: float = 1.0) -> None:
        """Names what is measured next; in a log, once for each method."""
        self._cost_per_token = cost_per_token
        if self._live:
            self._progress.update(self._task, description=f"{method} {part}")
        elif method != self._method and self._speaks:
            say(self._console, f"measuring {method}")
        self._method = method

    def advance(self, tokens: int) -> None:
        """Counts tokens that went through the model."""
        self._tokens += tokens
        rate = self._tokens / max(time.monotonic() - self._started, 1e-3)
        self._progress.update(self._task, advance=tokens * self._cost_per_token, rate=f"{rate:,.0f} tokens/s")


class CopyReporter(BarReporter):
    """Shows how far files are: a bar with rate and remaining time where bytes are counted, else a spinner."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TextColumn, TransferSpeedColumn

        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            DownloadColumn(),
            TransferSpeedColumn(),
        )

    def start(self, what: str, num_bytes: int) -> None:
        """Begins a part; 0 bytes where they are not known."""
        self._progress.start()
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=num_bytes or None)

    def advance(self, num_bytes: int) -> None:
        """Counts bytes that are done."""
        self._progress.advance(self._task, num_bytes)
