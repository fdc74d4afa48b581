"""What the tables of results have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ropectl.lengths import format_length
from ropectl.report.sheet import Cell, Sentence

NOT_AVAILABLE = "n/a"
BEYOND_MARK = "*"


def length_column(length: int, trained: int) -> str:
    """Returns the head of a length's column; the trained length is marked."""
    return f"{format_length(length)} (L)" if length == trained else format_length(length)


def beyond_mark(beyond: bool) -> str:
    """Returns the footnote mark of a number past the length that its method is made for."""
    return BEYOND_MARK if beyond else ""


def beyond_legend(marks: Iterable[bool]) -> list[Sentence]:
    """Returns what the mark behind a number means, if there is one."""
    return [Sentence(f"{BEYOND_MARK} past the length that the method is made for")] if any(marks) else []


def mark_best(column: Sequence[Cell], values: Sequence[float | None], smallest: bool) -> list[Cell]:
    """Returns the cells of a column with the best of them marked, and those that read the same.

    What more than half of the rows share tells nobody apart and is not marked.

    Args:
        column: The cells.
        values: Their values; None or not finite where there is none.
        smallest: Whether less is better.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return list(column)
    best = min(known) if smallest else max(known)
    text = column[list(values).index(best)].text
    if 2 * sum(cell.text == text for cell in column) > len(known):
        return list(column)
    return [replace(cell, best=True) if cell.text == text else cell for cell in column]
