"""Reads rows of data sets as documents, through the ``datasets`` library.

Rows are streamed. No code that comes with a data set is executed: the library has had no loading scripts
since 4.0, the oldest version that is allowed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ropectl.data.documents import Document, choose_field, row_document
from ropectl.errors import DataError

#: The split that is read where none is named.
DEFAULT_SPLIT = "train"

#: What a document is.
ROW_RULE = "a row is a document"

#: The names of readers in ``datasets``, by the end of a file's name.
_FILE_FORMATS = {".parquet": "parquet", ".arrow": "arrow"}

#: First bytes by the end of a file's name; Arrow has a format for files and one for streams.
_BEGINS = {".parquet": (b"PAR1",), ".arrow": (b"ARROW1", b"\xff\xff\xff\xff")}

#: Hints, by a part of the library's message in lower case; the first that fits is given.
_HINTS = {
    "gated": "Accept its terms on the hub, then log in: hf auth login",
    "scripts are no longer supported": "Code that comes with a data set is never run; look for the same data as Parquet or JSON lines.",
    "available splits": "Name one of them: --text hf:NAME:SPLIT",
    "config name is missing": "Name one of them: --text hf:NAME,CONFIG",
    "builderconfig": "Name one that exists: --text hf:NAME,CONFIG",
    **dict.fromkeys(
        ("reach", "offline"),
        "The hub cannot be reached: connect, unset HF_HUB_OFFLINE, or give a local file or folder.",
    ),
    "doesn't exist": "Check the name, and log in if it is private: hf auth login",
}


def data_file_documents(path: Path, field: str) -> Iterator[Document]:
    """Yields the documents of a Parquet or Arrow file, one per row.

    Raises:
        DataError: If it has no such field, or is damaged.
    """
    _check_begin(path)
    with explained_library_errors(str(path)):
        from datasets import load_dataset

        files = [str(path.absolute())]
        dataset = load_dataset(_FILE_FORMATS[path.suffix], data_files=files, split="train", streaming=True)
    yield from documents_of(dataset, str(path), field)


def _check_begin(path: Path) -> None:
    """Checks the first bytes of a file: the library takes those of another format for sizes, and asks for all memory."""
    begins = _BEGINS[path.suffix]
    with path.open("rb") as file:
        first = file.read(max(map(len, begins)))
    if not first.startswith(begins):
        raise DataError(f"{path} is not a file of the format that its name says: it begins with {first!r}.")


def documents_of(dataset: Any, name: str, field: str) -> Iterator[Document]:
    """Returns the documents of a data set, one per row; the field is checked at once where the columns are known, else at the first row."""
    columns = dataset.column_names
    if columns is not None:
        field = _checked(columns, name, field)
        dataset = dataset.select_columns([field])  # no other column is decoded
    return _documents(dataset, name, field)


def _documents(dataset: Any, name: str, field: str) -> Iterator[Document]:
    with explained_library_errors(name):
        for number, row in enumerate(dataset):
            chosen = _checked(list(row), name, field)
            document = row_document(f"{name}:{number}", row, chosen)
            if document is None:
                raise DataError(
                    f"{name}, row {number}: the field {chosen!r} is neither text nor a list of tokens.",
                    "Name another field: --text SOURCE#FIELD",
                )
            yield document


def _checked(columns: list[str], name: str, field: str) -> str:
    chosen = choose_field(columns, field)
    if chosen not in columns:
        raise DataError(
            f"{name} has no field {chosen!r}; it has: {', '.join(columns) or 'none'}.",
            "Name one of them: --text SOURCE#FIELD",
        )
    return chosen


@contextmanager
def explained_library_errors(name: str) -> Iterator[None]:
    """Turns every error of the library, which streams with several HTTP and file libraries, into one message."""
    logger = logging.getLogger("datasets")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # what it logs of an error is in the message
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        shown = message if len(message) <= 300 else f"{message[:300]} ..."
        hint = next((hint for part, hint in _HINTS.items() if part in message.lower()), "")
        raise DataError(f"Cannot read the data set {name!r}: {shown}", hint) from error
    finally:
        logger.setLevel(before)
