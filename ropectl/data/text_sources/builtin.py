"""Texts that every Python brings along: ``builtin:NAME``."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

from ropectl.data.documents import Document
from ropectl.data.stdlib import stdlib_documents
from ropectl.data.text_source import TextSource
from ropectl.errors import DataError
from ropectl.names import name_hint

_TEXTS: dict[str, Callable[[], Iterator[Document]]] = {
    "builtin:stdlib": partial(stdlib_documents, held_out=True),
    "builtin:stdlib-train": partial(stdlib_documents, held_out=False),
}


class BuiltinText(TextSource):
    """The standard library of the running Python: held-out modules, and the others."""

    name: ClassVar[str] = "builtin"
    spelling: ClassVar[str] = "builtin:stdlib"
    help: ClassVar[str] = (
        "`builtin:stdlib` (held-out modules of Python's standard library), `builtin:stdlib-train` (the others)"
    )
    names: ClassVar[tuple[str, ...]] = tuple(_TEXTS)

    def matches(self, source: str) -> bool:
        """Returns whether it begins with ``builtin:``."""
        return source.startswith("builtin:")

    def documents(self, source: str) -> Iterator[Document]:
        """Returns one document per module.

        Raises:
            DataError: If there is no such text, or Python came without its sources.
        """
        if source not in _TEXTS:
            raise DataError(f"There is no text source {source!r}.", name_hint(source, _TEXTS))
        return _TEXTS[source]()

    def identity(self, source: str) -> Any:
        """Returns the name and the version of Python."""
        return [source, platform.python_version()]
