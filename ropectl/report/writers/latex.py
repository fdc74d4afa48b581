"""Tables for LaTeX, in the style of the package ``booktabs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ropectl.report.document import BestNote, Cell, SmallTables, Table, View

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "[": "{[}", "]": "{]}", "*": "{*}",
    **{character: f"\\{character}" for character in "#$%&_{}"},
}  # fmt: skip

#: A hyphen before a number is a minus, and two together would become a dash.
_SIGN = re.compile(r"^[-+](?=\d)")


def latex_text(view: View, record: Any) -> str:
    """Returns a ``table`` with caption for each table of a record, and the sentences as comments."""
    blocks = ["% needs: \\usepackage[T1]{fontenc} \\usepackage{booktabs}"]
    for part in view.all_parts(record):
        if isinstance(part, Table):
            blocks.append("\n".join(_table(part)))
        elif isinstance(part, SmallTables):
            blocks += ["\n".join(_table(table)) for table in part.separate()]
        elif isinstance(part, BestNote):
            blocks.append(f"% bold: {part.of_several()}")
        elif not part.explains_drawing:
            blocks.append(f"% {part.text}")
    return "\n".join(blocks) + "\n"


def latex_escape(text: str) -> str:
    """Returns a text that LaTeX sets as it is written."""
    return "".join(_SPECIAL.get(character, character) for character in text).replace("--", "-{}-")


def _table(table: Table) -> Iterator[str]:
    """Drawings are left out: no font of LaTeX has block characters."""
    table = table.without(lambda column: column.is_drawing)
    yield "\\begin{table}"
    yield "\\centering"
    if table.title:
        yield f"\\caption{{{latex_escape(table.title)}}}"
    yield f"\\begin{{tabular}}{{l{''.join('l' if column.is_text else 'r' for column in table.columns)}}}"
    yield "\\toprule"
    if table.has_heads:
        yield _line([latex_escape(head) for head in (table.first, *(column.head for column in table.columns))])
        yield "\\midrule"
    for row in table.rows:
        if row.is_total:
            yield "\\midrule"
        yield _line([latex_escape(row.name), *map(_cell, row.cells)])
    yield "\\bottomrule"
    yield "\\end{tabular}"
    yield "\\end{table}"


def _line(entries: list[str]) -> str:
    return " & ".join(entries) + r" \\"


def _cell(cell: Cell) -> str:
    sign = _SIGN.match(cell.text)
    text = f"${sign[0]}$" + latex_escape(cell.text[1:]) if sign else latex_escape(cell.text)
    text = f"\\textbf{{{text}}}" if cell.is_best else text
    return text + (f"$^{{{cell.mark}}}$" if cell.mark else "")
