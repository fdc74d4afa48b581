"""Formats of a record other than JSON, the tables on a terminal and the page.

A new one is a module here, a line in the table, and its name in ``ropectl.report.format_names``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError
from ropectl.report.document import View
from ropectl.report.format_names import NAMES
from ropectl.report.record_views import ShownRecord
from ropectl.report.writers.csv import COLUMNS, RUN, csv_text
from ropectl.report.writers.latex import HEAD, latex_text
from ropectl.report.writers.markdown import MARK, markdown_text


@dataclass(frozen=True)
class WrittenFormat:
    """A format of records.

    Attributes:
        text: Returns the text of records, one after the other.
        suffixes: The ends of the names of its files.
        begins: The line that its files begin with, or one of these, by which they are known again.
        needs_values: Whether it can only hold measured values.
    """

    text: Callable[[Sequence[ShownRecord]], str]
    suffixes: Sequence[str]
    begins: Sequence[str]
    needs_values: bool = False

    def write(self, view: View, record: Any) -> str:
        """Returns the text of one record (or a list of them) as its view shows it."""
        return self.text([ShownRecord(view, record)])


FORMATS: Mapping[str, WrittenFormat] = {
    "csv": WrittenFormat(csv_text, (".csv",), (",".join(COLUMNS), ",".join((RUN, *COLUMNS))), needs_values=True),
    "markdown": WrittenFormat(markdown_text, (".md", ".markdown"), (MARK,)),
    "latex": WrittenFormat(latex_text, (".tex",), (HEAD,)),
}


def check_format(name: str, view: View, what: str, names: Sequence[str] = NAMES) -> None:
    """Checks that a format can hold what a view shows.

    Args:
        name: The format.
        view: What would be shown.
        what: What the user asked for, as typed.
        names: The formats that there are.

    Raises:
        ConfigError: If it holds measured values and there are none.
    """
    if name in FORMATS and FORMATS[name].needs_values and not view.has_values:
        others = [each for each in names if each not in FORMATS or not FORMATS[each].needs_values]
        raise ConfigError(
            f"--format {name} holds measured values, one a row, and {what} has none: possible are {', '.join(others)}.",
        )
