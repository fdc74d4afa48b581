"""Makes text from models, paths and files safe to print: no character in it moves a cursor, and a message quotes a line at most."""

from __future__ import annotations

import re
from typing import Any

#: Replaces a character that cannot be printed.
REPLACEMENT = "?"

#: C0 and C1 controls, escape among them; line and paragraph separators; marks that change the direction of text; halves
#: of characters, which no encoding can write.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

#: No message is longer [characters].
LONGEST_MESSAGE = 2000

_LONG_WORD = re.compile(r"\S{241,}")


def printable(text: str, keep: str = "") -> str:
    """Returns a text with ``?`` for every character that controls a terminal instead of being written.

    Args:
        text: Text from anywhere.
        keep: Controls that may stay, such as ``\\n``.
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else REPLACEMENT, text)


def shorten(text: str, width: int = 80) -> str:
    """Returns a text as one line of at most ``width`` characters; ``...`` stands for what is left out.

    Args:
        text: Text from anywhere, of any length.
        width: Longest result [characters].
    """
    line = " ".join(text[: width + 1].splitlines())
    return line if len(text) <= width else f"{line[: width - 3]}..."


def brief(message: str) -> str:
    """Returns a message without the middle of what is longer than any name or sentence.

    It is the last bound for what messages quote; where they quote a value, :func:`shown` shortens it in a better place.
    """
    words = _LONG_WORD.sub(lambda found: f"{found[0][:120]}...{found[0][-40:]}", message)
    return words if len(words) <= LONGEST_MESSAGE else f"{words[:LONGEST_MESSAGE]}..."


def first_line(error: BaseException) -> str:
    """Returns the first line of another program's complaint, shortened; the kind of error where it says nothing."""
    lines = str(error).strip().splitlines()
    return shorten(lines[0] if lines else type(error).__name__, 300)


def shown(value: Any, width: int = 80) -> str:
    """Returns how a message quotes a value of a file or an option: as Python writes it, shortened.

    Args:
        value: Anything that JSON or YAML can hold.
        width: Longest result [characters].
    """
    try:
        return shorten(repr(value[: width + 1] if isinstance(value, str | list) else value), width)
    except (RecursionError, ValueError):  # nested too deeply, or a whole number with too many digits to print
        return f"{type(value).__name__} too large to print"
