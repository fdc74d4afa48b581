"""The verdict and the tables of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ropectl.records import ComparisonRecord, to_json
from ropectl.report.blocks import Block, Commands, Hidden, Points, Section
from ropectl.report.document import HEADLINE, LEAD, NOTE, WARNING, Sentence, Table
from ropectl.report.page.commands import comparison_command
from ropectl.report.page.reach_bars import reach_bars
from ropectl.report.tables.differences import EXPLAINED, difference_tables, references_of
from ropectl.report.tables.tail import tail_tables
from ropectl.report.tables.words import row_names
from ropectl.report.views.compare_methods import comparison_tables, legends, picked_row, subjects_of

#: With more lengths than this, each measurement has its own table.
MAX_LENGTHS_TOGETHER = 5

_EXPLAINED = (
    "Below each perplexity: its 95 % interval, and the change from the unscaled model in the same context; below passkeys: the "
    "95 % interval of their share. worst up to: the largest change at the lengths measured up to there, which is the price on "
    "ordinary text. No best "
    "is marked in a column where more than half of the rows are not told apart from it."
)


def verdict_section(record: ComparisonRecord, folder: Path | None) -> Section:
    """Returns the verdict, which comes first on the page.

    Args:
        record: The comparison.
        folder: Its run folder; None if not known.
    """
    failed = sum(bool(row.errors) for row in record.rows)
    lack = f"{failed} of {len(record.rows)} rows lack something that failed: see \u201cErrors\u201d."
    blocks = list(_unfinished(record, folder) if record.unfinished else _verdict(record))
    return Section("Verdict", "verdict", [*blocks, *([Sentence(lack, WARNING)] if failed else [])])


def _unfinished(record: ComparisonRecord, folder: Path | None) -> Iterator[Block]:
    assert record.unfinished is not None
    yield Sentence(
        f"Unfinished: {record.unfinished.missing} of {record.unfinished.cells} cells are missing. What is here is shown; "
        "nothing is picked before all is measured.",
        WARNING,
    )
    command = comparison_command(record, folder)
    if command is not None:
        yield Sentence("To continue it, from the folder where it was started:")
        yield Commands([command])


def _verdict(record: ComparisonRecord) -> Iterator[Block]:
    index, target = picked_row(record), record.target_length
    if index is None or record.pick is None:
        yield from (Sentence(sentence, LEAD) for sentence in record.verdict)
        return
    yield Sentence(f"Pick for {target:,} tokens: {row_names(record.rows)[index]}", HEADLINE)
    yield reach_bars(to_json(record.rows[index].reach), target, record.geometry.original_max_position_embeddings)
    yield Sentence(
        "Chosen by rule, not by name: the longest use, then the longest modelling, then the least change on short text:"
    )
    yield Points(record.pick.reasons)
    if record.pick.tied:
        yield Sentence(
            f"Not told apart from it by the rule: {', '.join(row_names(record.rows)[i] for i in record.pick.tied)}."
        )
    yield from map(Sentence, record.verdict)


def table_section(record: ComparisonRecord) -> Section:
    """Returns the comparison as one table, or one for each measurement where there are many lengths."""
    *tables, reach = comparison_tables(record)
    tables.append(replace(reach, title="Reach [tokens]"))
    tail = tail_tables(record, subjects_of(record))
    is_together = len(record.lengths) <= MAX_LENGTHS_TOGETHER
    shown = [side_by_side("All methods by context length", tables)] if is_together else tables
    notes = [
        replace(part, tone=NOTE) if isinstance(part, Sentence) else part for part in legends(record, [*tables, *tail])
    ]
    return Section("Comparison", "table", [*shown, *tail, Sentence(_EXPLAINED, NOTE), *notes, *_differences(record)])


def _differences(record: ComparisonRecord) -> Iterator[Block]:
    """Yields the paired differences from each reference."""
    for index in references_of(record):
        tables = difference_tables(record, index)
        yield Hidden(f"Differences from {row_names(record.rows)[index]}", [*tables, replace(EXPLAINED, tone=NOTE)])


def side_by_side(title: str, tables: Sequence[Table]) -> Table:
    """Returns tables with the same rows as one, their titles over their columns, without drawings.

    Args:
        title: Of the whole.
        tables: At least one.
    """
    tables = [table.without(lambda column: column.is_drawing) for table in tables]
    columns = [replace(column, group=table.title) for table in tables for column in table.columns]
    rows = [
        replace(rows[0], cells=[cell for row in rows for cell in row.cells])
        for rows in zip(*(table.rows for table in tables), strict=True)
    ]
    return replace(tables[0], title=title, columns=columns, rows=rows)
