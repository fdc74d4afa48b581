"""Text as a page shows it: nothing invisible, nothing that turns lines around, nothing endless."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

#: Longer text from a record is cut; the record itself can be downloaded from the page.
MAX_TEXT = 8000

#: Characters of these categories are shown as their escapes: control, format (which turn lines around), surrogates,
#: private use, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def visible(text: str) -> str:
    """Returns text without characters that do anything but stand there, and not longer than fits a page."""
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]} [\u2026 {len(text) - MAX_TEXT} more characters]"
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t":
        return " " if character == "\t" else character
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character


def sentences(parts: Iterable[object]) -> str:
    """Returns what records say as sentences behind each other: each begins with a capital and has an end.

    A first word that is no plain word, such as the name of a method with a hyphen, stays as it is written.
    """
    return " ".join(_sentence(part) for part in map(str.strip, map(str, parts)) if part)


def _sentence(text: str) -> str:
    first = text.partition(" ")[0].rstrip(",.:;")
    if first.isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else f"{text}."


def finalize(value: Any) -> Any:
    """What the template does with every value before it is escaped; our own markup stays as it is."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else visible(str(value))
