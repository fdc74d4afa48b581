"""Makes text from models, paths and files safe to print: no character in it moves a cursor or reverses the text."""

from __future__ import annotations

import re

#: Replaces a character that cannot be printed.
REPLACEMENT = "?"

#: C0 and C1 controls, escape among them; line and paragraph separators; marks that change the direction of text; halves
#: of characters, which no encoding can write.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, keep: str = "") -> str:
    """Returns a text with ``?`` for every character that controls a terminal instead of being written.

    Args:
        text: Text from anywhere.
        keep: Controls that may stay, such as ``\\n``.
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else REPLACEMENT, text)
