"""Reports on a terminal or in a text file: the same characters in both, with styles that a file leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from ropectl.report.document import BAD, GOOD, BestNote, Cell, Column, Part, Row, SmallTables, Table
from ropectl.report.graphics import BAR_WIDTH, bar
from ropectl.report.writers.fold import column_groups, fold, spread
from ropectl.report.writers.notes import without_details
from ropectl.report.writers.small_tables import shade_style, small_tables_lines

INDENT, GAP = 1, 2

#: After the best number of a column, and after several that are not told apart, to be seen without colours.
BEST_MARK, TIE_MARK = "<", "="

#: The column of names has at least this width on the narrowest terminal, and at most this share of any.
MIN_NAME_WIDTH, MAX_NAME_SHARE = 8, 0.4

#: Columns of words are not made narrower than this.
MIN_TEXT_WIDTH = 12

_NO_STYLE = Style()
_STYLES = {"": _NO_STYLE, GOOD: Style(color="green"), BAD: Style(color="red")}
_BEST = Style(color="green", bold=True)
_BOLD = Style(bold=True)


@dataclass(frozen=True)
class _Widths:
    """Widths of the parts of a column, which are aligned: text, marks and bar."""

    text: int
    mark: int
    bar: int

    @property
    def whole(self) -> int:
        return self.text + self.mark + self.bar


def terminal_lines(parts: Sequence[Part], width: int) -> list[Text]:
    """Returns a report in lines; empty ones separate tables.

    Args:
        parts: The report.
        width: The longest a line may be [characters].
    """
    lines: list[Text] = []
    parts = without_details(parts)
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else None
        is_heading_before = number == 1 and not _is_table(before)
        if before is not None and not is_heading_before and (_is_table(part) or _is_table(before)):
            lines.append(Text())
        if isinstance(part, Table):
            lines += _lines_of_table(part, width)
        elif isinstance(part, SmallTables):
            lines += small_tables_lines(part, width)
        elif isinstance(part, BestNote):
            lines += _plain(f"{BEST_MARK} {part.text}", width)
            lines += _plain(f"{TIE_MARK} {part.tied}", width) if part.tied else []
        else:
            is_bold = part.tone or part.is_heading
            lines += _plain(part.text, width, _STYLES[part.tone] + (_BOLD if is_bold else _NO_STYLE))
    return lines


def _is_table(part: Part | None) -> bool:
    return isinstance(part, Table | SmallTables)


def _plain(text: str, width: int, style: Style = _NO_STYLE) -> list[Text]:
    return [Text(line, style=style, no_wrap=True, overflow="ignore") for line in fold(text, width)]


@dataclass(frozen=True)
class _Layout:
    """The layout of a table: the parts of its columns, the widths of all columns with the names first, and the groups."""

    measured: Sequence[_Widths]
    least: Sequence[int]
    wanted: Sequence[int]
    groups: Sequence[Sequence[int]]
    gap: int


def _lines_of_table(table: Table, width: int) -> list[Text]:
    room = max(width - INDENT, 1)
    table = _with_intervals(table) if table.has_intervals else table
    # Headings are broken and gaps narrowed only where that saves a further table.
    ways = [_layout(table, room, breaks_heads, gap) for breaks_heads, gap in ((False, GAP), (True, GAP), (True, 1))]
    way = min(ways, key=lambda each: len(each.groups))
    lines: list[Text] = []
    for number, group in enumerate(way.groups):
        shown = [0, *(index + 1 for index in group)]
        given = [way.least[index] for index in shown]
        given = spread(given, [way.wanted[index] for index in shown], room - sum(given) - way.gap * len(group))
        lines += [Text()] if number else []
        title = ", ".join(filter(None, [table.title, table.drawn, "continued" if number else ""]))
        lines += _plain(title, width, _BOLD) if title else []
        lines += _table_lines(table, group, given, way)
    return lines


def _with_intervals(table: Table) -> Table:
    """Returns the table with intervals behind the numbers and their marks."""
    rows = [replace(row, cells=list(map(_with_interval, row.cells))) for row in table.rows]
    return replace(table, rows=rows)


def _with_interval(cell: Cell) -> Cell:
    spread = f" sd {cell.spread}" if cell.spread else ""
    behind = "" if cell.interval is None else f" ({'-'.join(cell.interval)}){spread}"
    return replace(cell, text=f"{cell.text}{cell.mark}{behind}", mark="")


def _layout(table: Table, room: int, breaks_heads: bool, gap: int) -> _Layout:
    entries = [[row.cells[index] for row in table.rows] for index in range(len(table.columns))]
    measured = [_measure(column, below, breaks_heads) for column, below in zip(table.columns, entries, strict=True)]
    wanted = [each.whole for each in measured]
    least = [
        min(want, max(MIN_TEXT_WIDTH, column.word)) if column.is_text else want
        for want, column in zip(wanted, table.columns, strict=True)
    ]
    names = max([cell_len(table.first), *(cell_len(row.name) for row in table.rows)])
    first = min(names, max(MIN_NAME_WIDTH, int(room * MAX_NAME_SHARE)))
    first = max(min(first, room - gap - max(least, default=0)), min(names, MIN_NAME_WIDTH))
    return _Layout(measured, [first, *least], [names, *wanted], column_groups(first, least, room, gap), gap)


def _measure(column: Column, entries: Sequence[Cell], breaks_head: bool) -> _Widths:
    heads = column.head.split(" ") if breaks_head else [column.head]
    return _Widths(
        text=max([*map(cell_len, heads), *(cell_len(cell.text) for cell in entries)]),
        mark=max([0, *(len(_marks(cell)) for cell in entries)]),
        bar=1 + BAR_WIDTH if any(cell.bar is not None for cell in entries) else 0,
    )


def _marks(cell: Cell) -> str:
    return cell.mark + ((TIE_MARK if cell.is_tied else BEST_MARK) if cell.is_best else "")


def _table_lines(table: Table, group: Sequence[int], given: Sequence[int], way: _Layout) -> list[Text]:
    rule = Text("─" * (sum(given) + way.gap * len(group)))
    lines = []
    if table.has_heads:
        lines += [*_head_lines(table, group, given, way), rule]
    for row in table.rows:
        lines += [rule] if row.is_total else []
        lines += _row_lines(row, table, group, given, way)
    return [_indented(line) for line in lines]


def _head_lines(table: Table, group: Sequence[int], given: Sequence[int], way: _Layout) -> Iterator[Text]:
    """Yields the headings; those of numbers are above their digits."""
    blocks = [[_left(line, given[0]) for line in fold(table.first, given[0])]]
    for index, width in zip(group, given[1:], strict=True):
        column, widths = table.columns[index], way.measured[index]
        if column.is_text or column.is_drawing:
            blocks.append([_left(line, width) for line in fold(column.head, width)])
        else:
            lines = fold(column.head, widths.text)
            blocks.append([_left(" " * (widths.text - cell_len(line)) + line, width) for line in lines])
    height = max(map(len, blocks))
    blanks = [[" " * width] * (height - len(block)) for block, width in zip(blocks, given, strict=True)]
    for line in zip(*(blank + block for blank, block in zip(blanks, blocks, strict=True)), strict=True):
        yield Text((" " * way.gap).join(line), style=_BOLD)


def _indented(line: Text) -> Text:
    result = Text(" " * INDENT, no_wrap=True, overflow="ignore").append_text(line)
    result.rstrip()
    return result


def _row_lines(row: Row, table: Table, group: Sequence[int], given: Sequence[int], way: _Layout) -> list[Text]:
    blocks = [[Text(_left(line, given[0])) for line in fold(row.name, given[0], 2)]]
    for index, width in zip(group, given[1:], strict=True):
        cell = row.cells[index]
        if table.columns[index].is_text or table.columns[index].is_drawing:
            lines = fold(cell.text, width)
            blocks.append([Text(_left(line, width), style=_STYLES[cell.tone]) for line in lines])
        else:
            blocks.append([_number(cell, way.measured[index])])
    joined = []
    for number in range(max(map(len, blocks))):
        line = Text()
        for column, (block, width) in enumerate(zip(blocks, given, strict=True)):
            line.append(" " * way.gap if column else "")
            line.append_text(block[number] if number < len(block) else Text(" " * width))
        joined.append(line)
    return joined


def _number(cell: Cell, widths: _Widths) -> Text:
    """Returns a number whose digits are aligned with those of its column, whatever marks follow."""
    style = _BEST if cell.is_best else _STYLES[cell.tone]
    if cell.shade is not None:
        style = shade_style(cell.shade) + (_BOLD if cell.is_best else _NO_STYLE)
    text = Text()
    text.append(" " * (widths.text - cell_len(cell.text)), style=_NO_STYLE if cell.shade is None else style)
    text.append(cell.text + _marks(cell), style=style)
    text.append(" " * (widths.mark - len(_marks(cell))))
    if widths.bar:
        text.append(" " + (" " * BAR_WIDTH if cell.bar is None else bar(cell.bar, cell.possible)))
    return text


def _left(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
