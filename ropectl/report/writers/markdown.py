"""Tables in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ropectl.report.document import BestNote, Cell, SmallTables, Table, View
from ropectl.report.graphics import bar

#: Characters that would be markup.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")

#: Characters that begin a list or a heading at the start of a paragraph.
_BEGINNING = re.compile(r"^([-+=]|\d+(?=[.)]))")


def markdown_text(view: View, record: Any) -> str:
    """Returns the tables and sentences of a record, a paragraph each."""
    blocks: list[str] = []
    for part in view.all_parts(record):
        if isinstance(part, Table):
            blocks.append("\n".join(_table(part)))
        elif isinstance(part, SmallTables):
            blocks += ["\n".join(_table(table)) for table in part.separate()]
        elif isinstance(part, BestNote):
            blocks.append(f"**bold**: {markdown_escape(part.of_several())}")
        else:
            blocks.append(_paragraph(part.text))
    return "\n\n".join(blocks) + "\n"


def markdown_escape(text: str) -> str:
    """Returns a text escaped so that nothing in it is markup."""
    return _SPECIAL.sub(r"\\\1", text)


def _paragraph(text: str) -> str:
    def defused(found: re.Match[str]) -> str:
        return f"\\{found[1]}" if not found[1].isdigit() else f"{found[1]}\u200b"

    return _BEGINNING.sub(defused, markdown_escape(text))


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"**{markdown_escape(table.title)}**\n"
    yield _line([markdown_escape(text) for text in (table.first, *(column.head for column in table.columns))])
    aligned = [":--" if column.is_text or column.is_drawing else "--:" for column in table.columns]
    yield _line([":--", *aligned])
    for row in table.rows:
        yield _line([markdown_escape(row.name), *map(_cell, row.cells)])


def _line(entries: list[str]) -> str:
    return "| " + " | ".join(entries) + " |"


def _cell(cell: Cell) -> str:
    text = markdown_escape(cell.text)
    text = (f"**{text}**" if cell.is_best else text) + markdown_escape(cell.mark)
    return text if cell.bar is None else f"{text} {bar(cell.bar, cell.possible)}"
