"""Passkey retrieval by depth and length as heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.lengths import format_length
from ropectl.report.layout import beyond_mark
from ropectl.report.sheet import Cell, Column, Multiples, Row, Sheet

ABSENT = "-"


def needle_place(cell: Mapping[str, Any], grid: str) -> float:
    """Returns what a cell stands at: its depth, or where its needle begins."""
    value: float = cell["depth" if grid == "depth" else "needle_position"]
    return value


def place_name(place: float, grid: str) -> str:
    """Returns how a depth or a position is written."""
    return f"{place:.0%}" if grid == "depth" else format_length(int(place))


def heat_sheet(
    title: str, results: Sequence[Mapping[str, Any]], grid: str, heads: Sequence[str] | None = None
) -> Sheet:
    """Returns right answers by needle (down) and length (across).

    Args:
        title: Of the table.
        results: Retrieval by length, with its cells.
        grid: ``depth`` or ``position``: what tells needles apart.
        heads: Headings of the lengths; by default as people write lengths.
    """
    places = sorted({needle_place(cell, grid) for result in results for cell in result["depths"]})
    found = [{needle_place(cell, grid): cell for cell in result["depths"]} for result in results]
    marks = [beyond_mark(result["beyond_capacity"]) for result in results]
    heads = heads or [format_length(r["length"]) + m for r, m in zip(results, marks, strict=True)]
    rows = [Row(place_name(place, grid), [_cell(cells.get(place)) for cells in found]) for place in places]
    return Sheet(title, grid, [Column(head) for head in heads], rows)


def _cell(cell: Mapping[str, Any] | None) -> Cell:
    return Cell(ABSENT) if cell is None else Cell(str(cell["correct"]), shade=cell["correct"] / cell["trials"])


def differing_maps(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Multiples]:
    """Returns heat maps of the rows of a comparison whose answers depend on the depth, side by side.

    Where all or no passkeys of a length are found, depths say nothing that the table by length does not.
    """
    alike: dict[tuple[float, ...], list[Sheet]] = {}  # a failure may leave out lengths, and with them depths
    for name, row in zip(names, rows, strict=True):
        if _differs(row["passkey"]):
            depths = sorted({cell["depth"] for result in row["passkey"] for cell in result["depths"]})
            alike.setdefault(tuple(depths), []).append(heat_sheet(name, row["passkey"], "depth"))
    trials = next((cell["trials"] for row in rows for result in row["passkey"] for cell in _cells(result)), 0)
    title = f"Passkeys by depth, of {trials} a cell, where depth matters"
    return [Multiples(title, sheets) for sheets in alike.values()]


def _cells(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    cells: Sequence[Mapping[str, Any]] = result.get("depths", ())
    return cells


def _differs(results: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are two lengths at least, and at one of them two depths that differ."""
    found = [{cell["correct"] / cell["trials"] for cell in _cells(result)} for result in results]
    return len(results) > 1 and any(len(values) > 1 for values in found)
