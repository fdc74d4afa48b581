"""Gates: a measurement that is done, but falls short of what was asked for."""

from __future__ import annotations

from typing import NoReturn

import typer

#: Done, and short of a limit that a flag set.
EXIT_GATE = 3


def gate_failed(messages: list[str]) -> NoReturn:
    """Says what falls short, a warning each, and exits with code 3."""
    from ropectl.cli import output

    for message in messages:
        output.warn(message)
    raise typer.Exit(EXIT_GATE)
