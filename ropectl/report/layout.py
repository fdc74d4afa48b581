"""What the tables of results have in common."""

from __future__ import annotations

from collections.abc import Iterable

from ropectl.lengths import format_length
from ropectl.report.sheet import Sentence

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
