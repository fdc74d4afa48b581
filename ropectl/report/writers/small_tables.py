"""Small tables side by side, as many as a line takes: heat maps of several methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.text import Text

from ropectl.report.document import SmallTables, Table
from ropectl.report.writers.fold import column_groups, fold

INDENT, GAP = 1, 3

#: A block is at least so wide, to leave room for its name.
_MIN_BLOCK = 8

_BOLD = Style(bold=True)

#: Colours of heat maps at equal steps of the scale, red, green and blue in [0, 255]: from dark blue to yellow, which
#: people with any colour vision tell apart and which stay ordered in grey.
_SCALE = ((20, 35, 82), (67, 78, 108), (124, 123, 120), (186, 173, 110), (253, 231, 76))

_DARK, _BRIGHT = ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)


@dataclass(frozen=True)
class _Block:
    """Some columns of a small table, all of the same width."""

    table: Table
    columns: Sequence[int]
    cell: int

    @property
    def width(self) -> int:
        return max(self.cell * len(self.columns), _MIN_BLOCK)

    def title(self) -> list[str]:
        return fold(self.table.title, self.width, 1)


def small_tables_lines(part: SmallTables, width: int) -> list[Text]:
    """Returns the tables in lines no wider than this; names of rows are shown once, at the left."""
    names = max((cell_len(row.name) for table in part.tables for row in table.rows), default=0)
    names = max(names, max((cell_len(table.first) for table in part.tables), default=0))
    lines = [Text(line, style=_BOLD, no_wrap=True) for line in fold(part.title, width)]
    bands = _bands(list(_blocks(part.tables, width - INDENT - names)), width - INDENT - names)
    for number, band in enumerate(bands):
        lines += [*([Text()] if number else []), *_band_lines(band, names)]
    return lines


def _blocks(tables: Sequence[Table], room: int) -> Iterator[_Block]:
    for table in tables:
        texts = [column.head for column in table.columns]
        texts += [cell.text + cell.mark for row in table.rows for cell in row.cells]
        cell = 2 + max(map(cell_len, texts))
        for group in column_groups(0, [cell] * len(table.columns), room - GAP, 0):
            yield _Block(table, group, cell)


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
    heads = _start(band[0].table.first, names)
    for block in band:
        texts = [block.table.columns[i].head.rjust(block.cell) for i in block.columns]
        heads.append(" " * GAP + _padded("".join(texts), block.width))
    lines.append(heads)
    for row in range(len(band[0].table.rows)):
        line = _start(band[0].table.rows[row].name, names)
        for block in band:
            line.append(" " * GAP)
            for index in block.columns:
                cell = block.table.rows[row].cells[index]
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


def shade_style(share: float) -> Style:
    """Returns a background, and a text colour that stands out from it.

    Args:
        share: Position on the scale, in [0, 1].
    """
    place = min(max(share, 0.0), 1.0) * (len(_SCALE) - 1) if share == share else 0.0
    low = min(int(place), len(_SCALE) - 2)
    red, green, blue = (round(a + (b - a) * (place - low)) for a, b in zip(_SCALE[low], _SCALE[low + 1], strict=True))
    is_bright = 0.299 * red + 0.587 * green + 0.114 * blue > 115
    return Style(
        color=Color.from_triplet(_DARK if is_bright else _BRIGHT),
        bgcolor=Color.from_triplet(ColorTriplet(red, green, blue)),
    )
