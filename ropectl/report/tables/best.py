"""Which entries of a column are its best: alone where that is told apart from every other, else tied."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from ropectl.evaluate.judging.paired import leaders
from ropectl.records import Difference
from ropectl.report.document import BestNote, Cell, Table

#: What an entry is in its column.
BEST, TIED = "best", "tied"


def best_marks(
    values: Sequence[float | None],
    keys: Sequence[Hashable] | None,
    difference: Callable[[int, int], Difference | None],
    smallest: bool = True,
) -> list[str]:
    """Returns for each entry of a column whether it is the best, tied with the best, or neither.

    The best stands alone only where it is told apart from every other. Ties that more than half of the rows share say
    nothing and are not marked. Reach is not ranked: it is shown against the target instead.

    Args:
        values: The entries; None or not finite if missing.
        keys: Entries with equal keys are ranked together; None if nothing is to be marked.
        difference: Returns the paired difference of two of them.
        smallest: Whether less is better.
    """
    marks = [""] * len(values)
    for key in dict.fromkeys(keys or ()):
        assert keys is not None, "there is a key"
        group = [value if each == key else None for value, each in zip(values, keys, strict=True)]
        found = leaders(group, difference, smallest)
        if found is None or 2 * (1 + len(found.tied)) > sum(value is not None for value in group) > 2:
            continue
        marks[found.best] = TIED if found.tied else BEST
        for index in found.tied:
            marks[index] = TIED
    return marks


def marked(cell: Cell, mark: str) -> Cell:
    """Returns an entry with its mark."""
    return replace(cell, is_best=bool(mark), is_tied=mark == TIED)


def best_note(tables: Sequence[Table], more: str = "") -> list[BestNote]:
    """Returns what the marks of the best mean, if one of the tables has them.

    Args:
        tables: The tables.
        more: Further words.
    """
    cells = [cell for table in tables for row in table.rows for cell in row.cells if cell.is_best]
    tied = "not told apart from the best of its column" if any(cell.is_tied for cell in cells) else ""
    return [BestNote(f"best of its column, told apart from every other in pairs{more}", tied)] if cells else []
