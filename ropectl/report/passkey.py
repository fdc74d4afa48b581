"""The tables of ``eval-passkey``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ropectl.lengths import format_length
from ropectl.report.layout import BEYOND_MARK, NOT_AVAILABLE, beyond_legend, column_groups, table_of

ABSENT = "-"
_NO_PLACE = {
    "depth": f"{ABSENT} the prompt is so short that this depth is the position of another",
    "position": f"{ABSENT} the prompt ends before this position",
}


def passkey_parts(record: Mapping[str, Any]) -> list[Table | Text]:
    """Returns correct answers by needle and length, intervals by length, and what they come to."""
    results = record["lengths"]
    parts = [*_needle_tables(record), _length_table(results)]
    columns = len({_column(cell, record["grid"]) for result in results for cell in result["depths"]})
    if any(len(result["depths"]) < columns for result in results):
        parts.append(Text(_NO_PLACE[record["grid"]]))
    parts.extend(beyond_legend(result["beyond_capacity"] for result in results))
    parts.append(Text(_k_max(record["k_max"])))
    if record["num_differing"] is not None:
        trials = sum(result["trials"] for result in results)
        parts.append(Text(f"Decoded greedily, {record['num_differing']} of {trials} say otherwise than the scores."))
    return [*parts, Text(record["verdict"])]


def _needle_tables(record: Mapping[str, Any]) -> list[Table | Text]:
    grid, results = record["grid"], record["lengths"]
    columns = sorted({_column(cell, grid) for result in results for cell in result["depths"]})
    trials = results[0]["depths"][0]["trials"]
    title = f"Passkeys, of {trials} a {'depth' if grid == 'depth' else 'needle'}"
    parts: list[Table | Text] = []
    for group in column_groups(columns):
        table = table_of(title, [_header(column, grid) for column in group], "length")
        for result in results:
            found = {_column(cell, grid): str(cell["correct"]) for cell in result["depths"]}
            table.add_row(_marked(result), *(found.get(column, ABSENT) for column in group))
        parts.append(table)
    return parts


def _length_table(results: Sequence[Mapping[str, Any]]) -> Table:
    table = table_of("Over all needles", ["correct", "trials", "accuracy", "95 % interval", "log p(answer)"], "length")
    for result in results:
        interval = f"{result['ci_low']:.1%} to {result['ci_high']:.1%}"
        counts = str(result["correct"]), str(result["trials"])
        logprob = result["answer_logprob"]
        table.add_row(
            _marked(result),
            *counts,
            f"{result['accuracy']:.1%}",
            interval,
            NOT_AVAILABLE if logprob is None else f"{logprob:.2f}",
        )
    return table


def _column(cell: Mapping[str, Any], grid: str) -> float:
    """What a cell stands under: its depth, or where its needle begins."""
    value: float = cell["depth" if grid == "depth" else "needle_position"]
    return value


def _header(column: float, grid: str) -> str:
    return f"{column:.0%}" if grid == "depth" else format_length(int(column))


def _k_max(values: Mapping[str, int]) -> str:
    parts = [f"{length or 'none'} at {float(accuracy):.0%}" for accuracy, length in values.items()]
    return f"k_max, the longest length with that accuracy up to it: {', '.join(parts)}."


def _marked(result: Mapping[str, Any]) -> str:
    return f"{result['length']}{BEYOND_MARK if result['beyond_capacity'] else ''}"
