"""Gates: limits that a person sets for a result, so that a script can act on the exit code."""

from __future__ import annotations

from typing import NoReturn

import typer

from ropectl.cli.output import warn

EXIT_GATE = 3


def gate_failed(messages: list[str]) -> NoReturn:
    """Says which limits were not kept and exits with code 3."""
    for message in messages:
        warn(message)
    raise typer.Exit(EXIT_GATE)
