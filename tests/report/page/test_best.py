"""What is marked as the best of its column is the same on the page and in every other format."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ropectl.report.comparison import comparison_tables
from ropectl.report.page.blocks import Table
from ropectl.report.page.comparison import table_section
from ropectl.report.runs_read import read_runs
from ropectl.report.sheet import Sheet
from tests.report import records

GEOMETRY = {"rotary_dim": 32, "rope_theta": 10_000.0, "original_max_position_embeddings": 512}


def near_ties() -> dict[str, Any]:
    """Three rows read alike at 256 and differ in the ninth digit; all but one find every passkey there."""
    record = records.comparison()
    for number, row in enumerate(record["rows"]):
        row["perplexity"][0]["perplexity"] = 9.88 + (2e-9 * number if number < 3 else number)
        row["passkey"][0] = records.retrieval(256, [5, 5, 5, 5, 5 if number else 4])
        row["passkey"][1] = records.retrieval(512, [5, 5, 5, 5, 5 if number in (1, 4) else 3])
    return record


def unread_tokens() -> dict[str, Any]:
    """Models that read the text in different tokens."""
    return records.several_models()


def marked_by_sheets(record: dict[str, Any]) -> dict[str, set[tuple[str, str]]]:
    """Row and column of all that is marked, by measurement."""
    found = {}
    for part in comparison_tables(record):
        if isinstance(part, Sheet):
            marks = {
                (row.name, column.head)
                for row in part.rows
                for column, cell in zip(part.columns, row.cells, strict=True)
                if cell.best
            }
            found[re.split(r" by context|, of|:", part.title)[0]] = marks
    return found


def marked_by_page(record: dict[str, Any]) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for table in table_section(record).blocks:
        if not isinstance(table, Table):
            continue
        groups = [title for title, count in table.groups for _ in range(count)] or [""] * len(table.columns)
        for row in table.rows:
            for group, head, cell in zip(groups, table.columns[1:], row.cells, strict=False):
                name = {"Passkeys found": "Passkeys", "Reach [tokens]": "Reach"}.get(group, group)
                marks = found.setdefault(name, set())
                if cell.mark == "best":
                    marks.add((row.name, head))
    return found


@pytest.mark.parametrize("made", [near_ties, unread_tokens, records.comparison])
def test_page_and_sheets_mark_the_same(made: Any, tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(made() | {"geometry": GEOMETRY, "text": "builtin:stdlib"}))
    record: Any = read_runs([path])[0].record
    of_page, of_sheets = marked_by_page(record), marked_by_sheets(record)
    assert of_page == {name: of_sheets[name] for name in of_page} and set(of_page) >= {"Perplexity", "Reach"}


def test_rows_that_read_alike_are_all_best() -> None:
    marks = marked_by_page(near_ties() | {"same_tokens": True})
    assert {name for name, head in marks["Perplexity"] if head == "256"} == {"none", "pi", "yarn:factor=4"}
    found = {head: {name for name, other in marks["Passkeys"] if other == head} for _, head in marks["Passkeys"]}
    assert "256" not in found, "what most rows share tells nobody apart"
    assert len(found["512 (L)"]) == 2
