"""What the tables of results have in common: they fit 80 columns without losing a digit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ropectl.lengths import format_length

#: Length columns a table holds at 80 columns beside the method and the last columns.
LENGTHS_PER_TABLE = 6

#: The first column keeps this much on the narrowest terminal.
MIN_NAME_WIDTH = 8

NOT_AVAILABLE = "n/a"
BEYOND_MARK = "*"


def column_groups(columns: Sequence[Any], size: int = LENGTHS_PER_TABLE) -> list[Sequence[Any]]:
    """Returns columns in groups of ``size`` that fit a table each."""
    return [columns[start : start + size] for start in range(0, len(columns), size)]


def length_column(length: int, trained: int) -> str:
    """Returns the head of a length's column; the trained length is marked."""
    return f"{format_length(length)} (L)" if length == trained else format_length(length)


def table_of(title: str, columns: Sequence[str], first: str = "method") -> Table:
    """Returns an empty table: one column of names, and columns of numbers."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
    table.add_column(first, overflow="fold", min_width=MIN_NAME_WIDTH)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def beyond_legend(marks: Iterable[bool]) -> list[Text]:
    """Returns what the mark behind a number means, if there is one."""
    return [Text(f"{BEYOND_MARK} past the length that the method is made for")] if any(marks) else []
