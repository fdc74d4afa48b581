"""Gates: limits that a result must keep, for use in scripts and CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import typer


def gate_failed(messages: Sequence[str]) -> NoReturn:
    """Prints each message as a warning and ends the command with exit code 3."""
    from ropectl.cli import output
    from ropectl.cli.app import EXIT_GATE_FAILED  # which imports the commands that use this

    for message in messages:
        output.warn(message)
    raise typer.Exit(EXIT_GATE_FAILED)
