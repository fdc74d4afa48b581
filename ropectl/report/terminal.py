"""Reports on a terminal or in a text file: the same characters in both, with styles that a file leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from ropectl.report.fold import column_groups, fold, spread
from ropectl.report.graphics import BAR_WIDTH, bar
from ropectl.report.multiples import multiples_lines
from ropectl.report.shades import shade_style
from ropectl.report.sheet import BAD, GOOD, BestLegend, Cell, Column, Multiples, Part, Row, Sheet

INDENT, GAP = 1, 2

#: Behind the best number of a column, so that it is seen without colours and in a copied text.
BEST_MARK = "<"

#: The column of names keeps this much on the narrowest terminal, and takes no more than this share of one.
MIN_NAME_WIDTH, MAX_NAME_SHARE = 8, 0.4

#: Columns of words are not made narrower than this.
MIN_TEXT_WIDTH = 12

_NO_STYLE = Style()
_STYLES = {"": _NO_STYLE, GOOD: Style(color="green"), BAD: Style(color="red")}
_BEST = Style(color="green", bold=True)
_BOLD = Style(bold=True)


@dataclass(frozen=True)
class _Widths:
    """Of a column's parts: text, marks and bar stand below each other."""

    text: int
    mark: int
    bar: int

    @property
    def whole(self) -> int:
        return self.text + self.mark + self.bar


def terminal_lines(parts: Sequence[Part], width: int) -> list[Text]:
    """Returns a report in lines; empty ones set tables apart.

    Args:
        parts: The report.
        width: What a line may take.
    """
    lines: list[Text] = []
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else None
        is_heading_before = number == 1 and not _is_table(before)
        if before is not None and not is_heading_before and (_is_table(part) or _is_table(before)):
            lines.append(Text())
        if isinstance(part, Sheet):
            lines += _sheet_lines(part, width)
        elif isinstance(part, Multiples):
            lines += multiples_lines(part, width)
        elif isinstance(part, BestLegend):
            lines += _plain(f"{BEST_MARK} {part.text}", width)
        else:
            is_bold = part.tone or part.is_heading
            lines += _plain(part.text, width, _STYLES[part.tone] + (_BOLD if is_bold else _NO_STYLE))
    return lines


def _is_table(part: Part | None) -> bool:
    return isinstance(part, Sheet | Multiples)


def _plain(text: str, width: int, style: Style = _NO_STYLE) -> list[Text]:
    return [Text(line, style=style, no_wrap=True, overflow="ignore") for line in fold(text, width)]


@dataclass(frozen=True)
class _Layout:
    """How a table is laid out: its columns' parts, the widths of all columns with the names first, and which go together."""

    measured: Sequence[_Widths]
    least: Sequence[int]
    wanted: Sequence[int]
    groups: Sequence[Sequence[int]]
    gap: int


def _sheet_lines(sheet: Sheet, width: int) -> list[Text]:
    room = max(width - INDENT, 1)
    # Headings are broken and gaps narrowed only where that saves a further table.
    ways = [_layout(sheet, room, breaks_heads, gap) for breaks_heads, gap in ((False, GAP), (True, GAP), (True, 1))]
    way = min(ways, key=lambda each: len(each.groups))
    lines: list[Text] = []
    for number, group in enumerate(way.groups):
        shown = [0, *(index + 1 for index in group)]
        given = [way.least[index] for index in shown]
        given = spread(given, [way.wanted[index] for index in shown], room - sum(given) - way.gap * len(group))
        lines += [Text()] if number else []
        title = ", ".join(filter(None, [sheet.title, "continued" if number else ""]))
        lines += _plain(title, width, _BOLD) if title else []
        lines += _table_lines(sheet, group, given, way)
    return lines


def _layout(sheet: Sheet, room: int, breaks_heads: bool, gap: int) -> _Layout:
    entries = [[row.cells[index] for row in sheet.rows] for index in range(len(sheet.columns))]
    measured = [_measure(column, below, breaks_heads) for column, below in zip(sheet.columns, entries, strict=True)]
    wanted = [each.whole for each in measured]
    least = [
        min(want, max(MIN_TEXT_WIDTH, column.word)) if column.is_text else want
        for want, column in zip(wanted, sheet.columns, strict=True)
    ]
    names = max([cell_len(sheet.first), *(cell_len(row.name) for row in sheet.rows)])
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
    return cell.mark + (BEST_MARK if cell.best else "")


def _table_lines(sheet: Sheet, group: Sequence[int], given: Sequence[int], way: _Layout) -> list[Text]:
    columns = [sheet.columns[i] for i in group]
    rule = Text("─" * (sum(given) + way.gap * len(group)))
    lines = []
    if sheet.first or any(column.head for column in columns):
        lines += [*_head_lines(sheet, group, given, way), rule]
    for row in sheet.rows:
        lines += [rule] if row.is_total else []
        lines += _row_lines(row, sheet, group, given, way)
    return [_indented(line) for line in lines]


def _head_lines(sheet: Sheet, group: Sequence[int], given: Sequence[int], way: _Layout) -> Iterator[Text]:
    """Headings of numbers stand over their digits, and on the rule."""
    blocks = [[_left(line, given[0]) for line in fold(sheet.first, given[0])]]
    for index, width in zip(group, given[1:], strict=True):
        column, widths = sheet.columns[index], way.measured[index]
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


def _row_lines(row: Row, sheet: Sheet, group: Sequence[int], given: Sequence[int], way: _Layout) -> list[Text]:
    blocks = [[Text(_left(line, given[0])) for line in fold(row.name, given[0], 2)]]
    for index, width in zip(group, given[1:], strict=True):
        cell = row.cells[index]
        if sheet.columns[index].is_text or sheet.columns[index].is_drawing:
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
    """Digits stand below each other, whatever marks follow them."""
    style = _BEST if cell.best else _STYLES[cell.tone]
    if cell.shade is not None:
        style = shade_style(cell.shade) + (_BOLD if cell.best else _NO_STYLE)
    text = Text()
    text.append(" " * (widths.text - cell_len(cell.text)), style=_NO_STYLE if cell.shade is None else style)
    text.append(cell.text + _marks(cell), style=style)
    text.append(" " * (widths.mark - len(_marks(cell))))
    if widths.bar:
        text.append(" " + (" " * BAR_WIDTH if cell.bar is None else bar(cell.bar)))
    return text


def _left(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
