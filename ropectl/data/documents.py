"""A document: one continuous text with a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Document:
    """One continuous source text.

    Attributes:
        name: Stable identifier inside its source, such as a relative path.
        text: The whole text.
    """

    name: str
    text: str
