"""Which sentence of a report explains which table."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.report.document import BestNote, Part, Sentence, SmallTables, Table


def explains(note: Part, part: Part) -> bool:
    """Returns whether a part is a table with the marks that a note is about."""
    tables = part.tables if isinstance(part, SmallTables) else [part] if isinstance(part, Table) else []
    if isinstance(note, BestNote):
        return any(cell.is_best for table in tables for row in table.rows for cell in row.cells)
    if not isinstance(note, Sentence) or not note.concerns:
        return False
    return any(all(_shows(table, mark) for mark in note.concerns) for table in tables)


def _shows(table: Table, mark: str) -> bool:
    """Returns whether an entry or a heading has a mark; words and hyphens count only as the whole of one."""
    texts = [table.first, *(column.head for column in table.columns)]
    for row in table.rows:
        texts += [row.name, *(text for cell in row.cells for text in (cell.text, cell.mark))]
    is_sign = mark != "-" and not any(character.isalpha() for character in mark)
    return any(text == mark or (is_sign and mark in text) for text in texts)


def without_details(parts: Sequence[Part]) -> list[Part]:
    """Returns a report without what a terminal has no room for, and without explanations of that alone."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, Table) and not part.is_detail:
            kept.append(part.without(lambda column: column.is_detail))
        elif not isinstance(part, Table):
            kept.append(part)
    return [
        part
        for part in kept
        if isinstance(part, Table | SmallTables)
        or (isinstance(part, Sentence) and not part.concerns)
        or any(explains(part, each) for each in kept)
    ]
