"""Gates: limits that a result must keep, for use in scripts and CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import typer

#: Everything was measured, and a limit was not kept.
EXIT_GATE_FAILED = 3


def gate_failed(messages: Sequence[str]) -> NoReturn:
    """Prints each message as a warning and ends the command with exit code 3."""
    from ropectl.cli import output

    for message in messages:
        output.warn(message)
    raise typer.Exit(EXIT_GATE_FAILED)
