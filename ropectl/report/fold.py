"""Tables on any width: which columns stand beside each other, and where words are broken. Widths are in characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

#: Places in a word behind which it may be broken: those of a method spec and of a path.
_PIECES = re.compile(r"[^ ,:;/=_-]*[,:;/=_-]* *")
_WORDS = re.compile(r"[^ ]* *")


def column_groups(first: int, widths: Sequence[int], width: int, gap: int = 2) -> list[list[int]]:
    """Returns the columns in groups that fit a line each beside the column of names; one alone always counts as fitting.

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
    """Returns widths after spare room is given to those columns whose text would break into most lines.

    Args:
        widths: What they have.
        wanted: What they need not to break.
        spare: What there is to give.
    """
    result = list(widths)
    for _ in range(spare):
        lacking = [index for index, have in enumerate(result) if have < wanted[index]]
        if not lacking:
            break
        neediest = max(lacking, key=lambda index: wanted[index] / max(result[index], 1))
        result[neediest] += 1
    return result


def fold(text: str, width: int, indent: int = 0, words: bool = False) -> list[str]:
    """Returns a text in lines no wider than this, broken at spaces or inside specs and paths, else anywhere.

    Nothing is left out but spaces at the breaks.

    Args:
        text: One line.
        width: Of a line, at least 1.
        indent: Spaces before all lines but the first, if there is room for them.
        words: Whether only spaces are places to break, as in a sentence.
    """
    indent = indent if width > 3 * indent else 0
    lines = [""]
    for piece in (_WORDS if words else _PIECES).findall(text):
        room = width - (indent if len(lines) > 1 else 0)
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > room:
            lines.append("")
            room = width - indent
        for character in piece:
            if lines[-1] and cell_len(lines[-1] + character) > room and character != " ":
                lines.append("")
                room = width - indent
            lines[-1] += character
    return [(" " * indent if number else "") + line.rstrip() for number, line in enumerate(lines)]
