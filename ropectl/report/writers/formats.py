"""Formats of a record other than JSON and the tables on a terminal.

A new one is a module here and a line in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError
from ropectl.report.document import View
from ropectl.report.writers.csv import csv_text
from ropectl.report.writers.latex import latex_text
from ropectl.report.writers.markdown import markdown_text


@dataclass(frozen=True)
class WrittenFormat:
    """A format of records.

    Attributes:
        write: Returns the text of a record (or a list of them) as its view shows it.
        needs_values: Whether it can only hold measured values.
    """

    write: Callable[[View, Any], str]
    needs_values: bool = False


FORMATS: Mapping[str, WrittenFormat] = {
    "csv": WrittenFormat(csv_text, needs_values=True),
    "markdown": WrittenFormat(markdown_text),
    "latex": WrittenFormat(latex_text),
}

HUMAN, JSON = "human", "json"

#: The values of ``--format`` for a command that prints tables of results.
NAMES = (HUMAN, JSON, *FORMATS)


def check_format(name: str, view: View, what: str) -> None:
    """Checks that a format can hold what a view shows.

    Args:
        name: The format.
        view: What would be shown.
        what: What the user asked for, as typed.

    Raises:
        ConfigError: If it holds measured values and nothing is measured.
    """
    if name in FORMATS and FORMATS[name].needs_values and not view.has_values:
        others = [each for each in NAMES if each not in FORMATS or not FORMATS[each].needs_values]
        raise ConfigError(
            f"--format {name} holds measured values, and {what} measures nothing: possible are {', '.join(others)}.",
        )
