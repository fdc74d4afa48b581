"""Text sources: what ``--text`` can name. A new kind of source is one line in a table and the functions it names."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ropectl.data.datasets_source import (
    HUB_PREFIX,
    hub_documents,
    hub_identity,
    is_saved_dataset,
    saved_documents,
    saved_identity,
)
from ropectl.data.documents import Document
from ropectl.data.files_source import file_documents, file_identity
from ropectl.data.stdlib_source import stdlib_documents
from ropectl.errors import DataError
from ropectl.names import name_hint

BUILTIN_PREFIX = "builtin:"
BUILTIN_SOURCES: dict[str, Callable[[], Iterator[Document]]] = {
    "builtin:stdlib": partial(stdlib_documents, held_out=True),
    "builtin:stdlib-train": partial(stdlib_documents, held_out=False),
}


@dataclass(frozen=True)
class SourceKind:
    """A way to write a text source.

    Attributes:
        name: Short name of the kind.
        matches: Returns whether a source is written this way.
        documents: Returns its documents in a stable order, read one at a time.
        identity: Returns a JSON value that differs whenever the text may be another one.
    """

    name: str
    matches: Callable[[str], bool]
    documents: Callable[[str], Iterator[Document]]
    identity: Callable[[str], Any]


def _builtin_documents(source: str) -> Iterator[Document]:
    if source not in BUILTIN_SOURCES:
        raise DataError(f"There is no text source {source!r}.", name_hint(source, BUILTIN_SOURCES))
    return BUILTIN_SOURCES[source]()


def _starts_with(prefix: str) -> Callable[[str], bool]:
    return lambda source: source.startswith(prefix)


#: The first that matches is taken; whatever no other kind claims is a file, a folder or a glob.
SOURCE_KINDS = (
    SourceKind(
        "builtin", _starts_with(BUILTIN_PREFIX), _builtin_documents, lambda source: [source, platform.python_version()]
    ),
    SourceKind("hub", _starts_with(HUB_PREFIX), hub_documents, hub_identity),
    SourceKind("saved", is_saved_dataset, saved_documents, saved_identity),
    SourceKind("files", lambda source: True, file_documents, file_identity),
)


def open_source(source: str) -> Iterator[Document]:
    """Returns the documents of a text source, in a stable order, read one at a time.

    Args:
        source: ``builtin:stdlib`` (held-out modules of Python's standard library) or
            ``builtin:stdlib-train`` (the other side); ``hf:NAME[,CONFIG][:SPLIT][#FIELD]``, a data set on the
            hub, streamed; ``FOLDER[:SPLIT][#FIELD]``, a data set saved to disk; a text file; a ``.jsonl``,
            ``.parquet`` or ``.arrow`` file of rows (``FILE#FIELD``); a folder (all its files, recursively) or a
            glob pattern. Where no field is named it is ``input_ids`` if there is one, and the documents are
            then tokens, else ``text``.

    Raises:
        DataError: If nothing is there, or it cannot be read.
    """
    return _kind(source).documents(source)


def source_identity(source: str) -> list[Any]:
    """Returns a JSON value that differs whenever the text of a source may be another one.

    Files by path, size and time of change; the standard library by the Python version; data sets on the hub
    by their commit, where the hub can be asked.

    Raises:
        DataError: If nothing is there.
    """
    kind = _kind(source)
    return [kind.name, kind.identity(source)]


def same_source(one: str, other: str) -> bool:
    """Returns whether two sources are the same text, however they are written; the hub is not asked.

    Raises:
        DataError: If nothing is there.
    """
    if one == other or one.startswith(HUB_PREFIX) or other.startswith(HUB_PREFIX):
        return one == other
    return source_identity(one) == source_identity(other)


def _kind(source: str) -> SourceKind:
    return next(kind for kind in SOURCE_KINDS if kind.matches(source))
