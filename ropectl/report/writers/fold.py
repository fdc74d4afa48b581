"""Tables on any width: which columns go side by side, and where words are broken. Widths are in characters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

#: Where lines are broken: after spaces; if a word is longer than a line, between the parts of a method spec or a path,
#: then inside those, then anywhere.
_BREAKS = tuple(map(re.compile, (r"[^ ]* *", r"[^,:;/ ]*[,:;/]* *", r"[^=_ ]*[=_]* *", r"[^- ]*-* *", r".")))


def column_groups(first: int, widths: Sequence[int], width: int, gap: int = 2) -> list[list[int]]:
    """Returns the columns in groups that each fit on a line with the column of names; a single column always fits.

    Args:
        first: Width of the column of names.
        widths: Widths of the other columns.
        width: Width of the line.
        gap: Between two columns.
    """
    groups: list[list[int]] = [[]]
    used = first
    for index, column in enumerate(widths):
        if groups[-1] and used + gap + column > width:
            groups.append([])
            used = first
        groups[-1].append(index)
        used += gap + column
    return groups


def spread(widths: Sequence[int], wanted: Sequence[int], spare: int) -> list[int]:
    """Returns widths after spare room is given to the columns whose text would break into the most lines.

    Args:
        widths: The widths now.
        wanted: The widths at which nothing breaks.
        spare: Room to give away.
    """
    result = list(widths)
    for _ in range(spare):
        lacking = [index for index, have in enumerate(result) if have < wanted[index]]
        if not lacking:
            break
        neediest = max(lacking, key=lambda index: wanted[index] / max(result[index], 1))
        result[neediest] += 1
    return result


def fold(text: str, width: int, indent: int = 0) -> list[str]:
    """Returns a text in lines no wider than this; only spaces at the breaks are left out.

    Args:
        text: One line.
        width: Of a line, at least 1.
        indent: Spaces before all lines but the first, if there is room for them.
    """
    indent = indent if width > 3 * indent else 0
    lines = [""]
    for piece in _pieces(text, width - indent):
        room = width - (indent if len(lines) > 1 else 0)
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > room:
            lines.append("")
        lines[-1] += piece
    return [(" " * indent if number else "") + line.rstrip() for number, line in enumerate(lines)]


def _pieces(text: str, width: int, level: int = 0) -> Iterator[str]:
    """Yields the parts of a text that are not broken further."""
    for piece in _BREAKS[level].findall(text):
        if level + 1 < len(_BREAKS) and cell_len(piece.rstrip()) > width:
            yield from _pieces(piece, width, level + 1)
        else:
            yield piece
