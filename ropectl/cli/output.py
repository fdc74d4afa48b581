"""What goes to stdout (data, nothing else) and to stderr (progress and notes)."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ropectl.report.sheet import Part, View

#: Width of tables that are written to a file or a pipe, where COLUMNS does not say another.
PIPE_WIDTH = 80


def is_main_process() -> bool:
    """Returns whether this process speaks: the only one, or the first that a launcher started."""
    return os.environ.get("RANK", "0") == "0"


def stdout_console() -> Console:
    """Returns the console for results; plain text where stdout is not a terminal."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else PIPE_WIDTH
    return _console(width=width)


def stderr_console() -> Console:
    """Returns the console for progress and notes."""
    return _console(stderr=True)


def _console(**options: Any) -> Console:
    """A console that takes text as it is: no markup, no names of emoji, no character that moves a cursor."""
    from rich.console import Console

    from ropectl.cli.plain import PlainText

    console = Console(highlight=False, markup=False, emoji=False, **options)
    console.push_render_hook(PlainText(console))
    return console


def print_json(value: Any) -> None:
    """Prints one JSON document."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_human(*parts: RenderableType) -> None:
    """Prints tables and text for people."""
    console = stdout_console()
    for part in parts:
        console.print(part)


def print_parts(parts: Sequence[Part]) -> None:
    """Prints a report for people, as wide as the terminal."""
    from ropectl.report.terminal import terminal_lines

    console = stdout_console()
    for line in terminal_lines(parts, console.width):
        console.print(line)


def print_lines(lines: Sequence[str]) -> None:
    """Prints lines that are to be copied, never wrapped."""
    for line in lines:
        _write(printable(line, keep="\t") + "\n")


def _write(text: str) -> None:
    from ropectl.cli.plain import encodable

    sys.stdout.write(encodable(text, getattr(sys.stdout, "encoding", None) or "utf-8"))


def note(text: str) -> None:
    """Tells a person something that is not a result."""
    _say(stderr_console(), f"note: {text}")


def warn(text: str) -> None:
    """Tells a person what may make the result mean something else."""
    _say(stderr_console(), f"warning: {text}")


def _say(console: Console, text: str) -> None:
    """One line in a log, wrapped at words on a terminal."""
    console.print(text, soft_wrap=not console.is_terminal)


def quiet_libraries() -> None:
    """Keeps what concerns libraries, not the user, off the screen. To be called before they are imported."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    if not os.environ.get("ROPECTL_DEBUG"):
        warnings.filterwarnings("ignore", category=FutureWarning)  # what a library will rename some day


class ProgressReporter:
    """Shows how far a measurement is: a bar with rate and remaining time, or a line per cell in a log.

    Silent off the main process.
    """

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._console = stderr_console()
        self._speaks = is_main_process()
        self._live = self._console.is_terminal and self._speaks
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=self._console, transient=True, disable=not self._live)
        self._task: Any = None
        self._method = ""
        self._cost_per_token = 1.0
        self._started, self._tokens = 0.0, 0

    def __enter__(self) -> ProgressReporter:
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        """Prints a note above the bar."""
        if self._speaks:
            _say(self._console, f"note: {text}")

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
            _say(self._console, f"measuring {method}")
        self._method = method

    def advance(self, tokens: int) -> None:
        """Counts tokens that went through the model."""
        self._tokens += tokens
        rate = self._tokens / max(time.monotonic() - self._started, 1e-3)
        self._progress.update(self._task, advance=tokens * self._cost_per_token, rate=f"{rate:,.0f} tokens/s")


class CopyReporter:
    """Shows how far files are: a bar with rate and remaining time where bytes are counted, else a spinner."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

        self._console = stderr_console()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20), DownloadColumn())
        self._progress = Progress(
            *columns,
            TransferSpeedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task: Any = None

    def __enter__(self) -> CopyReporter:
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        """Prints a note above the bar."""
        _say(self._console, f"note: {text}")

    def start(self, what: str, num_bytes: int) -> None:
        """Begins a part; 0 bytes where they are not known."""
        self._progress.start()
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=num_bytes or None)

    def advance(self, num_bytes: int) -> None:
        """Counts bytes that are done."""
        self._progress.advance(self._task, num_bytes)


def check_one_process(command: str) -> None:
    """Checks that no launcher started the command several times: each process would measure all of it.

    Raises:
        ConfigError: If one did.
    """
    from ropectl.errors import ConfigError

    count = os.environ.get("WORLD_SIZE", "1")
    if count != "1":
        raise ConfigError(
            f"{command} is one process; a launcher started {count}.",
            "Start it by itself. Processes share the work of: ropectl compare-methods",
        )


def check_new(path: Path | None, overwrite: bool) -> None:
    """Checks that a result file can be written and would not take the place of another.

    Raises:
        ConfigError: If it cannot, or would, and that was not asked for.
    """
    from ropectl.errors import ConfigError
    from ropectl.runs import check_writable

    if path is not None and path.is_dir():
        raise ConfigError(
            f"{path} is a folder; the result is one file.", f"Type for example: --out {path / 'result.json'}"
        )
    if path is not None and path.exists() and not overwrite:
        raise ConfigError(f"{path} exists already.", "To replace it: --overwrite")
    if path is not None:
        check_writable(path.parent)


def show(record: Any, view: View, form: str) -> None:
    """Prints a record.

    Args:
        record: The record, or a list of them.
        view: What it looks like.
        form: ``human``, ``json`` or one of ``ropectl.report.formats``.
    """
    from ropectl.report.formats import FORMATS, HUMAN, JSON

    if form == JSON:
        print_json(record)
    elif form == HUMAN:
        print_parts(view.all_parts(record))
    else:
        _write(FORMATS[form].write(view, record))


def present(record: dict[str, Any], view: View, form: str, out: Path | None = None) -> None:
    """Prints a record as :func:`show` does, and writes it to a file if one is named, always as JSON."""
    from ropectl.runs import write_json

    show(record, view, form)
    if out is not None:
        write_json(out, record)
        note(f"Record: {out}")
