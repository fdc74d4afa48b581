"""Defines a document: one continuous text with a name, or its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Fields that are tried, in this order, where none is named.
TOKENS_FIELD, TEXT_FIELD = "input_ids", "text"

#: Tokens are stored as 32-bit integers.
TOKEN_LIMIT = 1 << 31


@dataclass(frozen=True)
class Document:
    """A continuous source text.

    Attributes:
        name: Stable identifier inside its source, such as a relative path.
        text: The whole text; empty where there are tokens instead.
        input_ids: Tokens of a pre-tokenized document; None where there is text.
    """

    name: str
    text: str
    input_ids: tuple[int, ...] | None = None


def choose_field(columns: Mapping[str, Any] | list[str], field: str) -> str:
    """Returns the field that holds a document: the named one, else ``input_ids`` where it is there, else ``text``."""
    return field or (TOKENS_FIELD if TOKENS_FIELD in columns else TEXT_FIELD)


def row_document(name: str, row: Any, field: str) -> Document | None:
    """Returns the document in a row of a data set, or None if the row holds none.

    Args:
        name: The document's name.
        row: Field names and values.
        field: The field with the text or the tokens; empty for ``input_ids`` where it is there, else ``text``.
    """
    if not isinstance(row, Mapping):
        return None
    value = row.get(choose_field(row, field))
    if isinstance(value, str):
        return Document(name, value) if _is_unicode(value) else None
    if isinstance(value, list | tuple) and all(type(token) is int and 0 <= token < TOKEN_LIMIT for token in value):
        return Document(name, "", tuple(value))
    return None


def _is_unicode(text: str) -> bool:
    """Returns False for a lone surrogate, which is not text."""
    try:
        text.encode()
    except UnicodeError:
        return False
    return True
