"""Text sources: what ``--text`` can name. A new kind of source is one function and one line in a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from glob import glob, has_magic
from pathlib import Path

from ropectl.builtin.corpus import stdlib_documents
from ropectl.data.documents import Document
from ropectl.errors import DataError

BUILTIN_SOURCES: dict[str, Callable[[], Iterator[Document]]] = {
    "builtin:stdlib": partial(stdlib_documents, held_out=True),
    "builtin:stdlib-train": partial(stdlib_documents, held_out=False),
}


def open_source(source: str) -> Iterator[Document]:
    """Returns the documents of a text source, in a stable order, read one at a time.

    Args:
        source: ``builtin:stdlib`` (held-out modules of Python's standard library),
            ``builtin:stdlib-train`` (the other side), a text file, a ``.jsonl`` file whose lines hold
            the text in a field (``text``, or ``FILE#FIELD``), a folder (all its files, recursively) or
            a glob pattern.

    Raises:
        DataError: If nothing is there.
    """
    if source in BUILTIN_SOURCES:
        return BUILTIN_SOURCES[source]()
    if source.startswith("builtin:"):
        raise DataError(f"There is no text source {source!r}.", f"Known: {', '.join(BUILTIN_SOURCES)}.")
    name, _, field = source.partition("#")
    path = Path(name).expanduser()
    if path.is_file():
        paths = [path]
    elif path.is_dir():
        paths = sorted(found for found in path.rglob("*") if found.is_file() and not _is_hidden(found, path))
    elif has_magic(name):
        paths = sorted(
            Path(found)
            for found in glob(str(path), recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
            if Path(found).is_file()
        )
    else:
        raise DataError(
            f"There is no text at {source!r}.", "Give a file, a folder, a glob in quotes, or builtin:stdlib."
        )
    if not paths:
        raise DataError(f"{source!r} holds no files.")
    return _documents(paths, field or "text")


def _documents(paths: list[Path], field: str) -> Iterator[Document]:
    for path in paths:
        if path.suffix == ".jsonl":
            yield from _json_lines(path, field)
        else:
            yield Document(str(path), _read(path))


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise _not_text(path) from None


def _not_text(path: Path) -> DataError:
    return DataError(
        f"{path} is not UTF-8 text.", "Give text files only, for example with a glob: --text 'books/*.txt'"
    )


def _json_lines(path: Path, field: str) -> Iterator[Document]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                text = json.loads(line)[field]
                text.encode()  # a lone surrogate is no text
            except UnicodeError:
                raise _not_text(path) from None
            except (ValueError, KeyError, TypeError, AttributeError):
                text = None
            if not isinstance(text, str):
                raise DataError(
                    f"{path}, line {number}, is not a JSON object with text in the field {field!r}.",
                    "Name the field: --text FILE#FIELD",
                )
            yield Document(f"{path}:{number}", text)
