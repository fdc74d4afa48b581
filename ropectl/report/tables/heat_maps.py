"""Passkey retrieval by depth and length as heat maps."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.lengths import format_length
from ropectl.records import MethodRow, PasskeyCell, PasskeyLength
from ropectl.report.document import Cell, Column, Row, SmallTables, Table
from ropectl.report.tables.words import beyond_mark

ABSENT = "-"


def needle_place(cell: PasskeyCell, grid: str) -> float:
    """Returns the row that a cell belongs to: its depth, or where its needle begins."""
    return cell.depth if grid == "depth" else cell.needle_position


def place_name(place: float, grid: str) -> str:
    """Returns a depth or a position as text."""
    return f"{place:.0%}" if grid == "depth" else format_length(int(place))


def heat_table(title: str, results: Sequence[PasskeyLength], grid: str, heads: Sequence[str] | None = None) -> Table:
    """Returns right answers by needle (down) and length (across).

    Args:
        title: Of the table.
        results: Retrieval by length, with its cells.
        grid: ``depth`` or ``position``: how needles are placed.
        heads: Headings of the lengths; by default such as ``4k``.
    """
    places = sorted({needle_place(cell, grid) for result in results for cell in result.depths})
    found = [{needle_place(cell, grid): cell for cell in result.depths} for result in results]
    marks = [beyond_mark(result.beyond_capacity) for result in results]
    heads = heads or [format_length(r.length) + m for r, m in zip(results, marks, strict=True)]
    rows = [Row(place_name(place, grid), [_cell(cells.get(place)) for cells in found]) for place in places]
    return Table(title, grid, [Column(head) for head in heads], rows)


def _cell(cell: PasskeyCell | None) -> Cell:
    return Cell(ABSENT) if cell is None else Cell(str(cell.correct), shade=cell.accuracy)


def differing_maps(rows: Sequence[MethodRow], names: Sequence[str]) -> list[SmallTables]:
    """Returns heat maps of the rows of a comparison whose answers depend on the depth, side by side.

    Where all or none of the passkeys of a length are found, depths add nothing to the table by length.
    """
    alike: dict[tuple[float, ...], list[Table]] = {}  # a failure may leave out lengths, and with them depths
    for name, row in zip(names, rows, strict=True):
        if _differs(row.passkey):
            depths = sorted({cell.depth for result in row.passkey for cell in result.depths})
            alike.setdefault(tuple(depths), []).append(heat_table(name, row.passkey, "depth"))
    trials = next((cell.trials for row in rows for result in row.passkey for cell in result.depths), 0)
    title = f"Passkeys by depth, of {trials} a cell, where depth matters"
    return [SmallTables(title, tables) for tables in alike.values()]


def _differs(results: Sequence[PasskeyLength]) -> bool:
    """Returns whether there are two lengths or more, and depths differ at one of them."""
    found = [{cell.accuracy for cell in result.depths} for result in results]
    return len(results) > 1 and any(len(values) > 1 for values in found)
