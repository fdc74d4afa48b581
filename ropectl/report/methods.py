"""Scaling methods for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text


def methods_table(entries: Sequence[Mapping[str, Any]]) -> Table:
    """Returns one line per method."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("method", "what it is", "parameters", "stock type"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        names = [
            parameter["name"] + ("" if not parameter["required"] else " (required)")
            for parameter in entry["parameters"]
        ]
        table.add_row(entry["name"], entry["title"], ", ".join(names), entry["native"])
    return table


def method_page(entry: Mapping[str, Any]) -> list[Text | Table]:
    """Returns everything about one method."""
    parts: list[Text | Table] = [
        Text(f"{entry['name']}: {entry['title']}", style="bold"),
        Text(f"\n{entry['summary']}\n"),
        Text(f"Formula:    {entry['formula']}"),
        Text(f"Reference:  {entry['reference']}"),
        Text(f"Stock type: {entry['native']}"),
        Text(f"Follows the sequence length: {'yes' if entry['depends_on_seq_len'] else 'no'}"),
    ]
    if entry["parameters"]:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("parameter", "default", "unit", "allowed", "meaning"):
            table.add_column(column, overflow="fold")
        for parameter in entry["parameters"]:
            default = "required" if parameter["required"] else _default(parameter["default"])
            table.add_row(
                parameter["name"],
                default,
                "" if parameter["unit"] == "1" else parameter["unit"] or "",
                parameter["allowed"] or "",
                parameter["help"],
            )
        parts.append(table)
    return parts


def _default(value: Any) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else f"{value:g}"
