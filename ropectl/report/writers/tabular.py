"""The body of a table in LaTeX: columns that fit a page, decimal points in line, intervals below the numbers.

Widths are in points, for text of nine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ropectl.report.document import Cell, Column, Row, SmallTables, Table
from ropectl.report.writers.fold import column_groups
from ropectl.report.writers.tex_text import breakable, latex_escape, number_text, padding

#: About the width of a character; and the space between two columns, without and with marks in it.
_CHARACTER, _GAP, _MARKED_GAP = 4.6, 8, 12

#: The width of a column of a page with two, and of a page, in most styles of papers; the narrowest lines of whole pages; and
#: the space between small tables.
_COLUMN, _PAGE, _LINE, _BETWEEN = 240, 440, 345, 15

#: The most lines of a float, of which a page holds about fifty.
_MOST_LINES = 36

#: Wider texts are broken into lines.
_WIDEST_NAME, _WIDEST_TEXT, _WIDEST_FACT = 160, 160, 290

#: Intervals are smaller than their numbers.
_OF_INTERVAL = 0.8

#: The command for a number with its interval below it, and what defines it.
STACK = r"\ropectlstack"
STACK_DEFINITION = rf"\providecommand{{{STACK}}}[2]{{\begin{{tabular}}[t]{{@{{}}r@{{}}}}#1\\#2\end{{tabular}}}}"


def bodies(table: Table) -> list[list[str]]:
    """Returns a table in lines: a list for each page that it takes. Drawings are left out: no font has their characters."""
    table = table.without(lambda column: column.is_drawing)
    widths = [_width(table, index) for index in range(len(table.columns))]
    groups = column_groups(_first_width(table), widths, _PAGE, _gap(table))
    pages: list[list[str]] = []
    lines = float(_MOST_LINES)
    for rows in _chunks(table):
        for group in groups:
            panel = replace(
                table,
                columns=[table.columns[index] for index in group],
                rows=[replace(row, cells=[row.cells[index] for index in group]) for row in rows],
            )
            height = 3 + sum(map(_height, panel.rows))
            if lines + height > _MOST_LINES:
                pages.append([])
                lines = 0
            pages[-1] += [*(["\\par\\medskip"] if pages[-1] else []), *_fitted(_tabular(panel))]
            lines += height
    return pages


def small_bodies(part: SmallTables) -> list[list[str]]:
    """Returns small tables in lines, side by side, as many as a line holds: a list for each page that they take."""
    widest = max(map(_whole_width, part.tables)) + _BETWEEN
    lines = 4 + max(len(table.rows) + len(table.title) // 20 for table in part.tables)
    count = max(1, int(_LINE // widest)) * max(1, _MOST_LINES // lines)
    starts = range(0, len(part.tables), count)
    return [_side_by_side(part.tables[start : start + count]) for start in starts]


def _side_by_side(tables: Sequence[Table]) -> list[str]:
    lines = ["{\\lineskip=1ex\\lineskiplimit=\\lineskip"]
    for table in tables:
        lines += [*_tabular(table, table.title), "\\hspace{1.5em plus 1em}"]
    return [*lines[:-1], "\\par}"]


def fits_beside(part: SmallTables) -> bool:
    """Returns whether each of some small tables is narrow enough to stand beside another."""
    return all(_whole_width(table) <= _COLUMN for table in part.tables)


def needs_page(part: Table | SmallTables) -> bool:
    """Returns whether a table is wider than one of two columns."""
    return len(part.tables) > 1 if isinstance(part, SmallTables) else _whole_width(part) > _COLUMN


def _whole_width(table: Table) -> float:
    shown = table.without(lambda column: column.is_drawing)
    return _first_width(shown) + sum(_width(shown, index) + _gap(table) for index in range(len(shown.columns)))


def _gap(table: Table) -> int:
    return _MARKED_GAP if any(cell.mark for row in table.rows for cell in row.cells) else _GAP


def _width(table: Table, index: int) -> int:
    """Returns the width of a column."""
    column, cells = table.columns[index], [row.cells[index] for row in table.rows]
    longest = max(map(len, [column.head, *(cell.text for cell in cells)]))
    intervals = [len(", ".join(cell.interval) + cell.spread) + 4 for cell in cells if cell.interval is not None]
    width = _CHARACTER * max([longest, *(_OF_INTERVAL * length for length in intervals)])
    return round(min(width, _widest(table)) if column.is_text else width)


def _widest(table: Table) -> int:
    return _WIDEST_TEXT if table.has_heads else _WIDEST_FACT


def _first_width(table: Table) -> int:
    longest = max(map(len, [table.first, *(row.name for row in table.rows)]))
    return round(min(_CHARACTER * longest, _WIDEST_NAME))


def _height(row: Row) -> float:
    """Returns about how many lines a row takes."""
    return 2 if any(cell.interval is not None for cell in row.cells) else 1


def _chunks(table: Table) -> Iterator[Sequence[Row]]:
    """Yields the rows that go on a page together."""
    most = max(1, round((_MOST_LINES - 3) / max(map(_height, table.rows), default=1)))
    for start in range(0, len(table.rows), most):
        yield table.rows[start : start + most]


def _fitted(lines: Sequence[str]) -> list[str]:
    """Returns a box that is made as wide as the line if it is wider."""
    return ["\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%", *lines[:-1], f"{lines[-1]}}}"]


def _tabular(table: Table, title: str = "") -> list[str]:
    is_broken = _is_broken([table.first, *(row.name for row in table.rows)], _WIDEST_NAME)
    first = f"p{{{_WIDEST_NAME}pt}}" if is_broken else "l"
    others = [_specification(table, index) for index in range(len(table.columns))]
    place, last = "[t]" if title else "", "@{}" if _gap(table) == _GAP else ""  # marks stand in the space
    lines = [
        f"\\setlength{{\\tabcolsep}}{{{_gap(table) // 2}pt}}%",
        f"\\begin{{tabular}}{place}{{@{{}}{first}{''.join(others)}{last}}}",
        "\\toprule",
    ]
    end = (
        "\\tabularnewline" if "p" in ([first, *others][-1]) else "\\\\"
    )  # where text is ragged, \\\\ ends a line of it
    if title:
        name = f"\\parbox[b]{{{_whole_width(table):.0f}pt}}{{\\raggedright {breakable(latex_escape(title))}\\strut}}"
        lines.append(f"\\multicolumn{{{len(others) + 1}}}{{@{{}}l@{{}}}}{{{name}}} {end}")
    if table.has_heads:
        heads = [latex_escape(head) for head in (table.first, *(column.head for column in table.columns))]
        lines += [_line(heads, end), "\\midrule"]
    pads = [padding([row.cells[index].text for row in table.rows]) for index in range(len(table.columns))]
    has_intervals = any(cell.interval is not None for row in table.rows for cell in row.cells)
    for number, row in enumerate(table.rows):
        if row.is_total:
            lines.append("\\midrule")
        elif number and has_intervals:
            lines.append("\\addlinespace[2pt]")
        entries = [
            _cell(cell, column, pad[number], specification)
            for cell, column, pad, specification in zip(row.cells, table.columns, pads, others, strict=True)
        ]
        name = f"\\raggedright {breakable(latex_escape(row.name))}" if is_broken else latex_escape(row.name)
        intervals = [_interval(cell) for cell in row.cells]
        if is_broken:  # a name of several lines would push what is below its first line away
            entries = [_stacked(*both) for both in zip(entries, intervals, strict=True)]
        lines.append(_line([name, *entries], end))
        if any(intervals) and not is_broken:
            lines.append(_line(["", *intervals], end))
    return [*lines, "\\bottomrule", "\\end{tabular}"]


def _specification(table: Table, index: int) -> str:
    if not table.columns[index].is_text:
        return "r"
    is_broken = _is_broken([row.cells[index].text for row in table.rows], _widest(table))
    return f"p{{{_widest(table)}pt}}" if is_broken else "l"


def _is_broken(texts: Sequence[str], widest: int) -> bool:
    return _CHARACTER * max(map(len, texts), default=0) > widest


def _line(entries: Sequence[str], end: str) -> str:
    return f"{' & '.join(entries)} {end}"


def _cell(cell: Cell, column: Column, pad: str, specification: str) -> str:
    if column.is_text:
        text = latex_escape(cell.text)
        return f"\\raggedright {breakable(text)}" if specification.startswith("p") else text
    text = number_text(cell.text)
    text = f"\\textbf{{{text}}}" if cell.is_best else text
    mark = latex_escape(cell.mark)
    return f"{text}{pad}" + (f"\\rlap{mark if mark.startswith('{') else f'{{{mark}}}'}" if mark else "")


def _stacked(entry: str, interval: str) -> str:
    return f"{STACK}{{{entry}}}{{{interval}}}" if interval else entry


def _interval(cell: Cell) -> str:
    if cell.interval is None:
        return ""
    low, high = map(number_text, cell.interval)
    spread = f" sd {number_text(cell.spread)}" if cell.spread else ""
    return f"{{\\scriptsize [{low}, {high}]{spread}}}"
