"""Tables for LaTeX, in the style of the package ``booktabs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ropectl.report.sheet import BestLegend, Cell, Multiples, Sheet, View

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "[": "{[}", "]": "{]}", "*": "{*}",
    **{character: f"\\{character}" for character in "#$%&_{}"},
}  # fmt: skip

#: A hyphen before a number is a minus, and two together would become a dash.
_SIGN = re.compile(r"^[-+](?=\d)")


def latex_text(view: View, record: Any) -> str:
    """Returns a ``table`` with caption for each table of a record, and what is said about them as comments."""
    blocks = ["% needs: \\usepackage[T1]{fontenc} \\usepackage{booktabs}"]
    for part in view.all_parts(record):
        if isinstance(part, Sheet):
            blocks.append("\n".join(_table(part, part.title)))
        elif isinstance(part, Multiples):
            blocks += ["\n".join(_table(sheet, f"{part.title}: {sheet.title}")) for sheet in part.sheets]
        elif isinstance(part, BestLegend):
            blocks.append(f"% bold: {part.text}")
        elif not part.is_of_drawing:
            blocks.append(f"% {part.text}")
    return "\n".join(blocks) + "\n"


def latex_escape(text: str) -> str:
    """Returns a text that LaTeX sets as it is written."""
    return "".join(_SPECIAL.get(character, character) for character in text).replace("--", "-{}-")


def _table(sheet: Sheet, title: str) -> Iterator[str]:
    """Drawings are left out: no font of LaTeX has block characters."""
    kept = [index for index, column in enumerate(sheet.columns) if not column.is_drawing]
    columns = [sheet.columns[index] for index in kept]
    yield "\\begin{table}"
    yield "\\centering"
    if title:
        yield f"\\caption{{{latex_escape(title)}}}"
    yield f"\\begin{{tabular}}{{l{''.join('l' if column.is_text else 'r' for column in columns)}}}"
    yield "\\toprule"
    heads = [sheet.first, *(column.head for column in columns)]
    if any(heads):
        yield _line([latex_escape(head) for head in heads])
        yield "\\midrule"
    for row in sheet.rows:
        if row.is_total:
            yield "\\midrule"
        yield _line([latex_escape(row.name), *(_cell(row.cells[index]) for index in kept)])
    yield "\\bottomrule"
    yield "\\end{tabular}"
    yield "\\end{table}"


def _line(entries: list[str]) -> str:
    return " & ".join(entries) + r" \\"


def _cell(cell: Cell) -> str:
    sign = _SIGN.match(cell.text)
    text = f"${sign[0]}$" + latex_escape(cell.text[1:]) if sign else latex_escape(cell.text)
    text = f"\\textbf{{{text}}}" if cell.best else text
    return text + (f"$^{{{cell.mark}}}$" if cell.mark else "")
