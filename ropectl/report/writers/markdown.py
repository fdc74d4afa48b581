"""Tables in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ropectl.report.document import BestNote, Cell, Part, SmallTables, Table
from ropectl.report.graphics import bar
from ropectl.report.record_views import ShownRecord

#: How a file begins, which no reader sees.
MARK = "<!-- Made by ropectl. -->"

#: Characters that would be markup.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")

#: Characters that begin a list or a heading at the start of a paragraph.
_BEGINNING = re.compile(r"^([-+=]|\d+(?=[.)]))")


def markdown_text(shown: Sequence[ShownRecord]) -> str:
    """Returns the tables and sentences of records, a paragraph each; those of several runs under a heading each."""
    blocks: list[str] = []
    for each in shown:
        if each.run:
            blocks.append(f"## {markdown_escape(each.run)}")
        if each.about:
            blocks.append(_paragraph(each.about))
        blocks += [block for part in each.parts() for block in _blocks(part)]
    return "\n\n".join(blocks) + "\n"


def _blocks(part: Part) -> Iterator[str]:
    if isinstance(part, Table):
        yield "\n".join(_table(part))
    elif isinstance(part, SmallTables):
        yield from ("\n".join(_table(table)) for table in part.separate())
    elif isinstance(part, BestNote):
        yield f"**bold**: {markdown_escape(part.of_several())}"
    else:
        yield _paragraph(part.text)


def markdown_escape(text: str) -> str:
    """Returns a text escaped so that nothing in it is markup."""
    return _SPECIAL.sub(r"\\\1", text)


def _paragraph(text: str) -> str:
    def defused(found: re.Match[str]) -> str:
        return f"\\{found[1]}" if not found[1].isdigit() else f"{found[1]}\u200b"

    return _BEGINNING.sub(defused, markdown_escape(text))


def _table(table: Table) -> Iterator[str]:
    title = ", ".join(filter(None, [table.name or table.title, table.drawn]))
    if title:
        yield " ".join(filter(None, [f"**{markdown_escape(title)}**", markdown_escape(table.about)])) + "\n"
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
    if cell.interval is not None:
        text += markdown_escape(f" [{', '.join(cell.interval)}]{cell.spread and f' sd {cell.spread}'}")
    return text if cell.bar is None else f"{text} {bar(cell.bar, cell.possible)}"
