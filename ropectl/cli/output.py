"""Output: data, and nothing else, to stdout; progress and notes to stderr."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ropectl.printable import printable

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from ropectl.records import PatchRecord
    from ropectl.report.document import Part, View

#: The measurement is done, and falls short of a limit that a flag set.
EXIT_GATE = 3

#: Plus the number of the signal: 130 for Ctrl-C, 143 for SIGTERM.
EXIT_OF_SIGNAL = 128

#: Width of tables that are written to a file or a pipe, where COLUMNS does not say another.
PIPE_WIDTH = 80

#: No table fits in less. Some terminals that do not know their own width report such a number; it is ignored.
MIN_WIDTH = 20


def is_main_process() -> bool:
    """Returns whether this process may print: it is the only one, or the first that a launcher started."""
    return os.environ.get("RANK", "0") == "0"


def stdout_console() -> Console:
    """Returns the console for results; plain text where stdout is not a terminal."""
    return _console(width=None if sys.stdout.isatty() or _says_columns() else PIPE_WIDTH)


def stderr_console() -> Console:
    """Returns the console for progress and notes."""
    return _console(stderr=True)


def _says_columns() -> bool:
    """Returns whether COLUMNS is a width; 0 means that it is unknown."""
    text = os.environ.get("COLUMNS", "")
    return text.isdecimal() and text.isascii() and int(text[:9]) > 0


def _console(**options: Any) -> Console:
    """Returns a console that prints text as it is: no markup, no names of emoji, no character that moves a cursor."""
    from ropectl.cli.plain import PlainConsole, PlainText

    console = PlainConsole(highlight=False, markup=False, emoji=False, **options)
    if console.width < MIN_WIDTH:
        console.width = MIN_WIDTH if _says_columns() else PIPE_WIDTH
    console.push_render_hook(PlainText(console))
    return console


def print_json(value: Any) -> None:
    """Prints one JSON document."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_parts(parts: Sequence[Part]) -> None:
    """Prints a report for people, as wide as the terminal."""
    from ropectl.report.writers.terminal import terminal_lines

    console = stdout_console()
    for line in terminal_lines(parts, console.width):
        console.print(line)


def print_lines(lines: Sequence[str]) -> None:
    """Prints lines that are to be copied, never wrapped."""
    for line in lines:
        write(printable(line, keep="\t") + "\n")


def print_report(
    record: Any,
    form: str,
    parts: Callable[[Any], Sequence[Part]],
    lines: Callable[[Any], Sequence[str]] | None = None,
    kind: type[PatchRecord] | None = None,
) -> None:
    """Prints a record that has no tables of results.

    Args:
        record: The record as JSON values.
        form: ``human`` or ``json``.
        parts: Makes the report for people.
        lines: Makes lines to copy, which are printed below it.
        kind: The type that the record is read as for both; by default they take the JSON values.
    """
    if form == "json":
        print_json(record)
        return
    if kind is not None:
        from ropectl.records.reading import read_as

        record = read_as(kind, record, "The result", kind.written_by)
    print_parts(parts(record))
    if lines is not None:
        print_lines(lines(record))


def write(text: str) -> None:
    """Prints a text as it is, as far as the terminal has its characters."""
    from ropectl.cli.plain import encodable

    sys.stdout.write(encodable(text, getattr(sys.stdout, "encoding", None) or "utf-8"))


def note(text: str) -> None:
    """Prints something that is not a result."""
    say(stderr_console(), f"note: {text}")


def next_step(text: str) -> None:
    """Prints a note with a command in one line however wide the terminal is, so that it can be copied."""
    stderr_console().print(f"note: {text}", soft_wrap=True)


def warn(text: str) -> None:
    """Prints something that may change what the result means."""
    say(stderr_console(), f"warning: {text}")


def say(console: Console, text: str) -> None:
    """Prints one line in a log; on a terminal it is wrapped at words."""
    console.print(text, soft_wrap=not console.is_terminal)


def gate_failed(messages: Sequence[str]) -> NoReturn:
    """Prints a warning for each limit that is not met, and exits with code 3."""
    for message in messages:
        warn(message)
    raise typer.Exit(EXIT_GATE)


def quiet_libraries() -> None:
    """Silences messages of libraries that do not concern the user. To be called before they are imported."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    if not os.environ.get("ROPECTL_DEBUG"):
        warnings.filterwarnings("ignore", category=FutureWarning)  # about future versions of libraries


def check_one_process(command: str) -> None:
    """Checks that no launcher started the command several times: each process would measure everything.

    Raises:
        ConfigError: If one did.
    """
    from ropectl.errors import ConfigError

    count = os.environ.get("WORLD_SIZE", "1")
    if count != "1":
        raise ConfigError(
            f"{command} runs as one process; a launcher started {count}.",
            "Start it without the launcher. Processes can share the work of: ropectl compare-methods",
        )


def check_new(path: Path | None, overwrite: bool, settings: BaseModel) -> None:
    """Checks that a result file can be written, and replaces another only if that was asked for.

    Args:
        path: The file; None for none.
        overwrite: Whether it may replace one.
        settings: The settings of the command: what they name is read, and never replaced.

    Raises:
        ConfigError: If it cannot be written, is there already without ``overwrite``, or is what the result is made from.
    """
    from ropectl.data.address import exists, expand, parse_address
    from ropectl.errors import ConfigError
    from ropectl.hf.model_settings import INPUTS
    from ropectl.output_places import check_output, check_writable

    if path is not None and path.is_dir():
        raise ConfigError(
            f"{path} is a folder; the result is one file.", f"Type for example: --out {path / 'result.json'}"
        )
    if path is not None:
        check_output(path)
    if path is not None and path.exists() and not overwrite:
        raise ConfigError(f"{path} exists already.", "To replace it: --overwrite")
    if path is not None:
        for name in filter(None, INPUTS.values(settings).values()):
            source = parse_address(str(name), ":#").name
            if path.exists() and exists(source) and path.samefile(expand(source)):
                raise ConfigError(f"{path} is what the result is made from.", "Choose another place: --out FILE")
        check_writable(path.parent)


def show(json: Any, form: str, view: View | None = None, record: Any = None) -> None:
    """Prints a record of results, or what else has tables.

    Args:
        json: Its JSON values.
        form: ``human``, ``json`` or one of ``ropectl.report.writers.formats``.
        view: The way it is shown; by default that of its kind of record.
        record: It as that view takes it; by default the record that the JSON values are.
    """
    from ropectl.records.reading import read_record
    from ropectl.report.record_views import view_of
    from ropectl.report.writers.formats import FORMATS

    if form == "json":
        print_json(json)
        return
    record = read_record(json, "The result") if view is None else record
    view = view or view_of(record)
    if form == "human":
        print_parts(view.all_parts(record))
    else:
        write(FORMATS[form].write(view, record))


def present(record: dict[str, Any], form: str, out: Path | None = None) -> None:
    """Prints a record as :func:`show` does, and writes it to a file if one is named, always as JSON."""
    show(record, form)
    write_record(record, out)


def write_record(record: dict[str, Any], out: Path | None) -> None:
    """Writes a record to a file as JSON, if one is named."""
    from ropectl.runs import write_json

    if out is not None:
        write_json(out, record)
        note(f"Record: {out}")
