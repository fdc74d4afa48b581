"""Defines the base class of text sources: how one is written, and how its documents are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from ropectl.data.documents import Document
from ropectl.errors import DataError


class NothingThereError(DataError):
    """There is no text where a source says; :mod:`ropectl.data.sources` adds what could have been meant."""


class TextSource(ABC):
    """A kind of text that ``--text`` can name. Help, documentation and messages read from here how it is written.

    Attributes:
        name: Short name of the kind; part of the identity of a text.
        spelling: The way such a source is written, in a few words for help and messages.
        help: The same in full, for the documentation.
        document: What a document is in such a source, as in ``a row is a document``.
        names: Whole sources of this kind, which completion offers.
        is_remote: Whether its identity needs a network.
    """

    name: ClassVar[str]
    spelling: ClassVar[str]
    help: ClassVar[str]
    document: ClassVar[str] = ""
    names: ClassVar[tuple[str, ...]] = ()
    is_remote: ClassVar[bool] = False

    @abstractmethod
    def matches(self, source: str) -> bool:
        """Returns whether a source is written this way."""

    @abstractmethod
    def documents(self, source: str) -> Iterator[Document]:
        """Returns its documents in a stable order, read one at a time.

        Raises:
            DataError: If there is no such text, or it cannot be read.
        """

    def document_rule(self, source: str) -> str:
        """Returns what a document is in this source; empty if its kind does not say."""
        return self.document

    @abstractmethod
    def identity(self, source: str) -> Any:
        """Returns a JSON value that differs whenever the text may be another one."""
