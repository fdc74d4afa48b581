"""Data sets written by ``save_to_disk``: ``FOLDER[:SPLIT][#FIELD]``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ropectl.data.address import Address, exists, file_stamps, parse_address, visible_files
from ropectl.data.dataset_rows import DEFAULT_SPLIT, ROW_RULE, documents_of, explained_library_errors
from ropectl.data.documents import Document
from ropectl.data.text_source import TextSource
from ropectl.errors import DataError


class SavedDataset(TextSource):
    """A folder written by ``save_to_disk`` of a Dataset or DatasetDict."""

    name: ClassVar[str] = "saved"
    spelling: ClassVar[str] = "a saved data set"
    help: ClassVar[str] = "`FOLDER[:SPLIT][#FIELD]`, a data set saved to disk"
    document: ClassVar[str] = ROW_RULE

    def matches(self, source: str) -> bool:
        """Returns whether a source names such a folder."""
        name = parse_address(source, ":#").name
        return exists(name) and (_is_one(Path(name)) or _is_many(Path(name)))

    def documents(self, source: str) -> Iterator[Document]:
        """Returns the documents of the data set, one per row.

        Raises:
            DataError: If it has no such split or field, or is damaged.
        """
        address = parse_address(source, ":#")
        folder = _split_folder(address)
        with explained_library_errors(str(folder)):
            from datasets import load_from_disk

            dataset = load_from_disk(str(folder))
        return documents_of(dataset, str(folder), address.field)

    def identity(self, source: str) -> Any:
        """Returns the field, and the stamps of the files that are read."""
        address = parse_address(source, ":#")
        return [address.field, file_stamps(visible_files(_split_folder(address)))]


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
