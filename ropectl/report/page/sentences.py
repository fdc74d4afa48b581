"""What records say in fragments, as sentences."""

from __future__ import annotations

from collections.abc import Iterable


def sentences(parts: Iterable[str]) -> str:
    """Returns what records say as sentences behind each other: each begins with a capital and has an end.

    A first word that is not a plain word, such as the name of a method with a hyphen, stays as it is written.
    """
    return " ".join(_sentence(part) for part in map(str.strip, parts) if part)


def _sentence(text: str) -> str:
    first = text.partition(" ")[0].rstrip(",.:;")
    if first.isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else f"{text}."
