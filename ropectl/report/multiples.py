"""Small tables side by side, as many as a line takes: heat maps of several methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from ropectl.report.fold import column_groups, fold
from ropectl.report.shades import shade_style
from ropectl.report.sheet import Multiples, Sheet

INDENT, GAP = 1, 3

#: A block is at least so wide, for the sake of its name.
_MIN_BLOCK = 8

_BOLD = Style(bold=True)


@dataclass(frozen=True)
class _Block:
    """A part of a small table: some of its columns, each so wide."""

    sheet: Sheet
    columns: Sequence[int]
    cell: int

    @property
    def width(self) -> int:
        return max(self.cell * len(self.columns), _MIN_BLOCK)

    def title(self) -> list[str]:
        return fold(self.sheet.title, self.width, 1)


def multiples_lines(part: Multiples, width: int) -> list[Text]:
    """Returns the tables in lines no wider than this; names of rows stand once, at the left."""
    names = max((cell_len(row.name) for sheet in part.sheets for row in sheet.rows), default=0)
    names = max(names, max((cell_len(sheet.first) for sheet in part.sheets), default=0))
    lines = [Text(line, style=_BOLD, no_wrap=True) for line in fold(part.title, width)]
    bands = _bands(list(_blocks(part.sheets, width - INDENT - names)), width - INDENT - names)
    for number, band in enumerate(bands):
        lines += [*([Text()] if number else []), *_band_lines(band, names)]
    return lines


def _blocks(sheets: Sequence[Sheet], room: int) -> Iterator[_Block]:
    for sheet in sheets:
        texts = [column.head for column in sheet.columns]
        texts += [cell.text + cell.mark for row in sheet.rows for cell in row.cells]
        cell = 2 + max(map(cell_len, texts))
        for group in column_groups(0, [cell] * len(sheet.columns), room - GAP, 0):
            yield _Block(sheet, group, cell)


def _bands(blocks: Sequence[_Block], room: int) -> list[list[_Block]]:
    groups = column_groups(0, [block.width for block in blocks], room, GAP)
    return [[blocks[index] for index in group] for group in groups if group]


def _band_lines(band: Sequence[_Block], names: int) -> list[Text]:
    titles = [block.title() for block in band]
    height = max(map(len, titles))
    lines = []
    for number in range(height):
        line = _start("", names)
        for block, title in zip(band, titles, strict=True):
            text = title[number - height + len(title)] if number >= height - len(title) else ""
            line.append(" " * GAP + _padded(text, block.width), style=_BOLD)
        lines.append(line)
    heads = _start(band[0].sheet.first, names)
    for block in band:
        texts = [block.sheet.columns[i].head.rjust(block.cell) for i in block.columns]
        heads.append(" " * GAP + _padded("".join(texts), block.width))
    lines.append(heads)
    for row in range(len(band[0].sheet.rows)):
        line = _start(band[0].sheet.rows[row].name, names)
        for block in band:
            line.append(" " * GAP)
            for index in block.columns:
                cell = block.sheet.rows[row].cells[index]
                text = f"{cell.text}{cell.mark}".rjust(block.cell)
                line.append(text, style=shade_style(cell.shade) if cell.shade is not None else Style())
            line.append(" " * (block.width - block.cell * len(block.columns)))
        lines.append(line)
    for line in lines:
        line.no_wrap, line.overflow = True, "ignore"
        line.rstrip()
    return lines


def _start(name: str, names: int) -> Text:
    return Text(" " * INDENT + name.rjust(names))


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
