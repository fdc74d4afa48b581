"""Text in files: plain text, JSON lines, Parquet and Arrow; single files, a folder or a glob pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from glob import glob, has_magic
from pathlib import Path
from typing import Any, ClassVar

from ropectl.data.address import exists, expand, file_stamps, parse_address, visible_files
from ropectl.data.dataset_rows import ROW_RULE, data_file_documents
from ropectl.data.documents import Document, row_document
from ropectl.data.text_source import NothingThereError, TextSource
from ropectl.errors import ConfigError, DataError
from ropectl.file_reading import MAX_TEXT, check_ordinary, read_text, text_lines
from ropectl.json_reading import parse_json

#: A text is read more than once: for its tokens, and to find them again.
_NO_STREAM = "Write the text to a file first: COMMAND > text.txt"

_ONE_DOCUMENT = "A file is one document of at most 128 MiB; of JSON lines, each line is one."


class TextFiles(TextSource):
    """A file, a folder or a glob pattern: whatever no other kind claims."""

    name: ClassVar[str] = "files"
    spelling: ClassVar[str] = "a file, a folder, a glob in quotes or FILE.jsonl#FIELD"
    help: ClassVar[str] = "a file, a folder, a glob; `FILE.jsonl#FIELD`, likewise `.parquet` and `.arrow`"
    document: ClassVar[str] = "a file is a document; where it has rows, a row is"

    def matches(self, source: str) -> bool:
        """Returns True: every other kind has been asked before."""
        return True

    def documents(self, source: str) -> Iterator[Document]:
        """Returns one document per file, or per row of a file of rows.

        Raises:
            DataError: If there is no such text, or a file is not what its name says.
        """
        address = parse_address(source, "#")
        paths = _paths(address.name, source)
        if address.field and not any(path.suffix in READERS for path in paths):
            raise DataError(
                f"{source!r} names a field, and {paths[0].name} has none: it is one text.",
                f"Fields are in {', '.join(READERS)} files.",
            )
        return (document for path in paths for document in READERS.get(path.suffix, _whole_text)(path, address.field))

    def document_rule(self, source: str) -> str:
        """Returns the rule for the files that are there; the first decides where some have rows and others do not."""
        has_rows = _paths(parse_address(source, "#").name, source)[0].suffix in READERS
        return ROW_RULE if has_rows else "a file is a document"

    def identity(self, source: str) -> Any:
        """Returns the field, and the stamps of the files."""
        address = parse_address(source, "#")
        return [address.field, file_stamps(_paths(address.name, source))]


def _paths(name: str, source: str) -> list[Path]:
    path = expand(name)
    if not exists(name) and has_magic(name):
        found = (Path(each) for each in glob(str(path), recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
        paths = sorted(each for each in found if each.is_file())
    elif not exists(name):
        raise NothingThereError(f"There is no text at {source!r}.")
    elif path.is_dir():
        paths = visible_files(path)
    else:
        check_ordinary(path, _NO_STREAM)
        paths = [path]
    if not paths:
        raise DataError(f"{source!r} holds no files.")
    return paths


def _whole_text(path: Path, field: str) -> Iterator[Document]:
    try:
        yield Document(str(path), read_text(path, MAX_TEXT))
    except UnicodeDecodeError:
        raise _not_text(path) from None
    except ConfigError as error:
        raise DataError(error.message, error.hint or _ONE_DOCUMENT) from None


def _json_lines(path: Path, field: str) -> Iterator[Document]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(text_lines(file, path), start=1):
                if line.strip():
                    yield _json_document(path, number, line, field)
    except OSError as error:
        raise _unreadable(path, error) from None


def _json_document(path: Path, number: int, line: bytes, field: str) -> Document:
    try:
        document = row_document(f"{path}:{number}", parse_json(line.decode(), str(path)), field)
    except UnicodeError:
        raise _not_text(path) from None
    except ConfigError:
        document = None
    if document is None:
        raise DataError(
            f"{path}, line {number}, is not a JSON object with text in the field {field or 'text'!r}.",
            "Name the field: --text FILE#FIELD",
        )
    return document


#: The readers of files, by the end of their names; all other files are one text each.
READERS: dict[str, Callable[[Path, str], Iterator[Document]]] = {
    ".jsonl": _json_lines,
    ".parquet": data_file_documents,
    ".arrow": data_file_documents,
}


def _not_text(path: Path) -> DataError:
    return DataError(
        f"{path} is not UTF-8 text.", "Give text files only, for example with a glob: --text 'books/*.txt'"
    )


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"Cannot read {path}: {error.strerror or error}.")
