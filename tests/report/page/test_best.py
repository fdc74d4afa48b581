"""Rows that are not told apart from the best are tied with it, on the terminal and on the page."""

from __future__ import annotations

from typing import Any

from ropectl.records import ComparisonRecord
from ropectl.report.document import Table
from ropectl.report.page.compared import table_section
from ropectl.report.views.compare_methods import comparison_tables
from tests.report import records


def near_ties() -> ComparisonRecord:
    """Three rows differ in the ninth digit at 256; all but one find every passkey there."""
    json = records.comparison()
    for number, row in enumerate(json["rows"]):
        row["perplexity"][0] = records.point(256, 9.88 + (2e-9 * number if number < 3 else number))
        row["passkey"][0] = records.retrieval(256, [5, 5, 5, 5, 5 if number else 4])
        row["passkey"][1] = records.retrieval(512, [5, 5, 5, 5, 5] if number in (1, 4) else [3, 3, 3, 3, 3])
    record: ComparisonRecord = records.made(json)
    return record


def marked(table: Table, start: int = 0) -> dict[str, set[str]]:
    """Names of the rows that are the best, by column."""
    heads = [column.head for column in table.columns][start:]
    return {
        head: {row.name for row in table.rows if row.cells[start + index].is_best} for index, head in enumerate(heads)
    }


def test_rows_that_are_not_told_apart_are_tied() -> None:
    perplexity, passkeys, _ = comparison_tables(near_ties())
    assert marked(perplexity)["256"] == {"none", "pi", "yarn:factor=4"}
    assert all(row.cells[0].is_tied for row in perplexity.rows[:3])
    found = marked(passkeys)
    assert not found["256"], "what most rows share does not tell rows apart"
    assert len(found["512 (L)"]) == 2
    best = marked(perplexity)["2k"]
    assert len(best) == 1 and not any(row.cells[3].is_tied for row in perplexity.rows)


def test_what_cannot_be_paired_has_no_best() -> None:
    """One document has no interval, and records without each trial's outcome have no pairs."""
    json = records.comparison()
    for row in json["rows"]:
        row["perplexity"] = [
            records.point(n, entry["perplexity"], documents=1)
            for n, entry in zip(records.LENGTHS, row["perplexity"], strict=True)
        ]
        for entry in row["passkey"]:
            for cell in entry["depths"]:
                cell["outcomes"] = []
    perplexity, passkeys, _ = comparison_tables(records.made(json))
    assert not any(any(found.values()) for found in (marked(perplexity), marked(passkeys)))


def test_the_page_marks_the_same() -> None:
    """It shows the tables of the terminal side by side."""
    record: Any = near_ties()
    joined = table_section(record).blocks[0]
    assert isinstance(joined, Table)
    start = 0
    for table in comparison_tables(record):
        table = table.without(lambda column: column.is_drawing)
        count = len(table.columns)
        assert [row.cells[start : start + count] for row in joined.rows] == [row.cells for row in table.rows]
        start += count
    assert joined.groups()[0][0] == "Perplexity by context (L: trained)"
