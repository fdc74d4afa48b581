"""Data sets on the hub, streamed: ``hf:NAME``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ropectl.data.address import Address, exists, file_stamps, parse_address, visible_files
from ropectl.data.dataset_rows import DEFAULT_SPLIT, ROW_RULE, documents_of, explained_library_errors
from ropectl.data.documents import Document
from ropectl.data.text_source import TextSource
from ropectl.errors import DataError
from ropectl.hf.hub_access import stay_offline_without_network

PREFIX = "hf:"


class HubDataset(TextSource):
    """A data set on the hub, or in a local folder that ``datasets`` can read."""

    name: ClassVar[str] = "hub"
    spelling: ClassVar[str] = "hf:NAME for a data set on the hub"
    help: ClassVar[str] = (
        "`hf:NAME[,CONFIG][:SPLIT][#FIELD]`, a data set on the hub, streamed, its code never run (default `:train#text`)"
    )
    document: ClassVar[str] = ROW_RULE
    is_remote: ClassVar[bool] = True

    def matches(self, source: str) -> bool:
        """Returns whether a source begins with ``hf:``."""
        return source.startswith(PREFIX)

    def documents(self, source: str) -> Iterator[Document]:
        """Returns the documents of a data set, one per row.

        Raises:
            DataError: If it does not exist or is not accessible, or has no such split or field.
        """
        address = parse_hub_address(source)
        stay_offline_without_network()
        with explained_library_errors(address.name):
            from datasets import load_dataset

            dataset = load_dataset(address.name, address.config or None, split=address.split, streaming=True)
        return documents_of(dataset, f"{address.name}:{address.split}", address.field)

    def identity(self, source: str) -> Any:
        """Returns the parts of the address and the commit on the hub (None where the hub does not give one), or the files' stamps."""
        address = parse_hub_address(source)
        if exists(address.name):
            return [*address, file_stamps(visible_files(Path(address.name)))]
        stay_offline_without_network()
        try:
            from huggingface_hub import HfApi

            revision = HfApi().dataset_info(address.name, timeout=10).sha
        except Exception:  # whatever is wrong is reported, with a hint, where the data set is opened
            revision = None
        return [*address, revision]


def parse_hub_address(source: str) -> Address:
    """Returns the parts of ``hf:NAME[,CONFIG][:SPLIT][#FIELD]``, with the default split.

    Raises:
        DataError: If there is no name.
    """
    address = parse_address(source.removeprefix(PREFIX), ",:#")
    if not address.name:
        raise DataError(f"{source!r} does not name a data set.", "Type: --text hf:NAME[,CONFIG][:SPLIT][#FIELD]")
    return address._replace(split=address.split or DEFAULT_SPLIT)
