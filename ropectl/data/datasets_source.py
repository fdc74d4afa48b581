"""Text in data sets of the ``datasets`` library: on the hub, saved to disk, or in Parquet and Arrow files.

Rows are streamed. Nothing that comes with a data set is executed: the library has had no loading scripts
since 4.0, the oldest version that is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ropectl.data.address import Address, exists, file_stamps, parse_address, visible_files
from ropectl.data.documents import Document, choose_field, row_document
from ropectl.errors import DataError
from ropectl.hf.config.hub_access import stay_offline_without_network

HUB_PREFIX = "hf:"
DEFAULT_SPLIT = "train"

#: How ``datasets`` names its readers, by the end of a file's name.
_FILE_FORMATS = {".parquet": "parquet", ".arrow": "arrow"}

#: What to do, by a part of the library's message in small letters; the first that fits.
_HINTS = {
    "gated": "Accept its terms on the hub, then log in: hf auth login",
    "scripts are no longer supported": "Code that comes with a data set is never run; look for the same data as Parquet or JSON lines.",
    "available splits": "Name one of them: --text hf:NAME:SPLIT",
    "config name is missing": "Name one of them: --text hf:NAME,CONFIG",
    "builderconfig": "Name one that there is: --text hf:NAME,CONFIG",
    "reach": "The hub is not to be had: connect, unset HF_HUB_OFFLINE, or give a local file or folder.",
    "offline": "The hub is not to be had: connect, unset HF_HUB_OFFLINE, or give a local file or folder.",
    "doesn't exist": "Check the name, and log in if it is private: hf auth login",
}


def parse_hub_address(source: str) -> Address:
    """Returns the parts of ``hf:NAME[,CONFIG][:SPLIT][#FIELD]``, with the default split.

    Raises:
        DataError: If there is no name.
    """
    address = parse_address(source.removeprefix(HUB_PREFIX), ",:#")
    if not address.name:
        raise DataError(f"{source!r} names no data set.", "Type: --text hf:NAME[,CONFIG][:SPLIT][#FIELD]")
    return address._replace(split=address.split or DEFAULT_SPLIT)


def hub_documents(source: str) -> Iterator[Document]:
    """Returns the documents of a data set on the hub, or in a local folder that ``datasets`` can read.

    Raises:
        DataError: If it is not there or not allowed, or has no such split or field.
    """
    address = parse_hub_address(source)
    stay_offline_without_network()
    with _told(address.name):
        from datasets import load_dataset

        dataset = load_dataset(address.name, address.config or None, split=address.split, streaming=True)
    return _rows(dataset, f"{address.name}:{address.split}", address.field)


def hub_identity(source: str) -> Any:
    """Returns the parts of the address and the commit on the hub (None where the hub does not tell), or the files' stamps."""
    address = parse_hub_address(source)
    if exists(address.name):
        return [*address, file_stamps(visible_files(Path(address.name)))]
    stay_offline_without_network()
    try:
        from huggingface_hub import HfApi

        revision = HfApi().dataset_info(address.name, timeout=10).sha
    except Exception:  # whatever is wrong is said, with a hint, where the data set is opened
        revision = None
    return [*address, revision]


def is_saved_dataset(source: str) -> bool:
    """Returns whether a source names a folder that ``save_to_disk`` has written."""
    folder = Path(parse_address(source, ":#").name)
    return _is_one(folder) or _is_many(folder)


def saved_documents(source: str) -> Iterator[Document]:
    """Returns the documents of a folder that ``save_to_disk`` of a Dataset or DatasetDict has written.

    Raises:
        DataError: If it has no such split or field, or is damaged.
    """
    address = parse_address(source, ":#")
    folder = _split_folder(address)
    with _told(str(folder)):
        from datasets import load_from_disk

        dataset = load_from_disk(str(folder))
    return _rows(dataset, str(folder), address.field)


def saved_identity(source: str) -> Any:
    """Returns the stamps of the files that are read, and the field."""
    address = parse_address(source, ":#")
    return [address.field, file_stamps(visible_files(_split_folder(address)))]


def data_file_documents(path: Path, field: str) -> Iterator[Document]:
    """Yields the documents of a Parquet or Arrow file, one a row.

    Raises:
        DataError: If it has no such field, or is damaged.
    """
    with _told(str(path)):
        from datasets import load_dataset

        files = [str(path.absolute())]
        dataset = load_dataset(_FILE_FORMATS[path.suffix], data_files=files, split="train", streaming=True)
    yield from _rows(dataset, str(path), field)


def _is_one(folder: Path) -> bool:
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


def _is_many(folder: Path) -> bool:
    return (folder / "dataset_dict.json").is_file()


def _split_folder(address: Address) -> Path:
    folder, split = Path(address.name), address.split
    if not _is_many(folder):
        if split:
            raise DataError(f"The data set in {folder} has no splits.", f"Type: --text {folder}")
        return folder
    there = sorted(each.name for each in folder.iterdir() if _is_one(each))
    wanted = split or (there[0] if len(there) == 1 else DEFAULT_SPLIT)
    if wanted not in there:
        raise DataError(
            f"The data set in {folder} has no split {wanted!r}; it has: {', '.join(there) or 'none'}.",
            "Name one of them: --text FOLDER:SPLIT",
        )
    return folder / wanted


def _rows(dataset: Any, name: str, field: str) -> Iterator[Document]:
    """Returns one document a row; the field is checked here where the columns are known, else at the first row."""
    columns = dataset.column_names
    if columns is not None:
        field = _checked(columns, name, field)
        dataset = dataset.select_columns([field])  # nothing else is decoded
    return _documents(dataset, name, field)


def _documents(dataset: Any, name: str, field: str) -> Iterator[Document]:
    with _told(name):
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
def _told(name: str) -> Iterator[None]:
    """Turns whatever goes wrong in the library into one message: it streams with several HTTP and file libraries."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        shown = message if len(message) <= 300 else f"{message[:300]} ..."
        hint = next((hint for part, hint in _HINTS.items() if part in message.lower()), "")
        raise DataError(f"Cannot read the data set {name!r}: {shown}", hint) from error
