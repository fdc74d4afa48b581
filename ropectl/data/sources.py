"""Finds text sources: everything that ``--text`` can name.

Every module in ``ropectl/data/text_sources`` is scanned, and every module that an installed package names under the
entry-point group ``ropectl.text_sources``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ropectl.data import text_sources
from ropectl.data.documents import Document
from ropectl.data.text_source import NothingThereError, TextSource
from ropectl.discovery import find_classes
from ropectl.errors import DataError

ENTRY_POINT_GROUP = "ropectl.text_sources"

#: The kind of everything that no other kind claims: a file, a folder or a glob.
LAST = "files"


@cache
def all_sources() -> dict[str, TextSource]:
    """Returns every kind of text source by name; the first that matches is meant.

    Raises:
        ConfigError: If two kinds share a name.
    """
    found = find_classes(text_sources, TextSource, ENTRY_POINT_GROUP, "text sources")  # type: ignore[type-abstract]
    return {name: kind() for name, kind in sorted(found.items(), key=lambda item: item[0] == LAST)}


def source_spellings() -> str:
    """Returns how sources of every kind are written, in one line for help and messages."""
    *others, last = (kind.spelling for kind in all_sources().values())
    return f"{', '.join(others)}, {last}" if others else last


def source_names() -> list[str]:
    """Returns the sources that have a fixed name, for completion."""
    return [name for kind in all_sources().values() for name in kind.names]


def open_source(source: str) -> Iterator[Document]:
    """Returns the documents of a text source, in a stable order, read one at a time.

    Args:
        source: Written as :func:`source_spellings` says. Where no field is named it is ``input_ids`` if there is
            one, and the documents are then tokens, else ``text``.

    Raises:
        DataError: If there is no such text, or it cannot be read.
    """
    with _spellings_added():
        return _kind(source).documents(source)


def source_identity(source: str) -> list[Any]:
    """Returns a JSON value that differs whenever the text of a source may be another one.

    Files by path, size and time of change; the standard library by the Python version; data sets on the hub
    by their commit, where the hub can be asked.

    Raises:
        DataError: If there is no such text.
    """
    kind = _kind(source)
    with _spellings_added():
        return [kind.name, kind.identity(source)]


def document_rule(source: str) -> str:
    """Returns what a document is in a source, as in ``a file is a document``; empty if its kind does not say."""
    return _kind(source).document_rule(source)


def check_source(source: str) -> None:
    """Checks that a text is there, as far as that is known without reading it or asking the hub.

    Raises:
        DataError: If it is not.
    """
    if not _kind(source).is_remote:
        source_identity(source)


def same_source(one: str, other: str) -> bool:
    """Returns whether two sources are the same text, however they are written; the hub is not asked.

    Raises:
        DataError: If there is no such text.
    """
    if one == other or _kind(one).is_remote or _kind(other).is_remote:
        return one == other
    return source_identity(one) == source_identity(other)


def _kind(source: str) -> TextSource:
    return next(kind for kind in all_sources().values() if kind.matches(source))


@contextmanager
def _spellings_added() -> Iterator[None]:
    try:
        yield
    except NothingThereError as error:
        raise DataError(error.message, f"Give {source_spellings()}.") from None
