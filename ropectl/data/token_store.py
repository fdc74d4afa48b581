"""Stores tokenized documents in a memory-mapped Arrow file: made once, then found again.

A store is a folder in the cache, named by what its tokens depend on. It is written under another name and renamed, so
a kill leaves nothing unfinished under its name, and two processes that make it at once both get a
complete one. Rows are parts of documents of at most ``ROW_TOKENS`` tokens, so that no document is too long.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ropectl.data.documents import Document
from ropectl.data.sources import open_source, source_identity
from ropectl.data.token_cache import CACHE_HINT, cache_folder, publish, scratch_folder, writing
from ropectl.data.tokenizing import tokenize_documents
from ropectl.data.tokens import check_vocabulary
from ropectl.errors import ConfigError
from ropectl.runs import content_id, write_json

#: Part of every store's name: changed when the same text would be stored in another way.
FORMAT = 1

#: Tokens of a row; the last row of a document has fewer.
ROW_TOKENS = 1 << 14

#: Rows that are collected before they are written.
_ROWS_IN_MEMORY = 64

_TOKENS_FILE, _FACTS_FILE = "tokens.arrow", "store.json"


class TokenStore:
    """Tokenized documents in an Arrow file, memory-mapped: the text of a run, whatever its size, in bounded memory.

    Args:
        folder: A store's folder; use :meth:`build` to make or find one.

    Attributes:
        lengths: Tokens of each document, BOS included where there is one, ``(documents,)`` int64.
        num_documents: Documents; empty ones are left out.
        num_tokens: Tokens of all of them.
        is_new: Whether it was built a moment ago.
        largest_token: The largest token; -1 where there is none.
        fingerprint: Hash of all tokens and of where documents end.

    Raises:
        ValueError: If the folder does not hold a complete store.
        OSError: If it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        from datasets import Dataset

        self._folder, self.is_new = folder, False
        facts = json.loads((folder / _FACTS_FILE).read_text())
        path = folder / _TOKENS_FILE
        if path.stat().st_size != facts["num_bytes"]:
            raise ValueError("another size than when it was written")
        self._rows = Dataset.from_file(str(path)).with_format("arrow")
        self.num_documents: int = facts["num_documents"]
        self.num_tokens: int = facts["num_tokens"]
        self.largest_token: int = facts["largest_token"]
        self.fingerprint: str = facts["fingerprint"]
        self.lengths = _document_lengths(self._rows.data, self.num_documents)
        rows = -(-self.lengths // ROW_TOKENS)
        self._first_row = np.cumsum(rows) - rows
        if int(self.lengths.sum()) != self.num_tokens or int(rows.sum()) != len(self._rows):
            raise ValueError("other counts than when it was written")

    def tokens(self, document: int, start: int, stop: int) -> list[int]:
        """Returns tokens ``start`` up to but not including ``stop`` of a document."""
        assert 0 <= start <= stop <= self.lengths[document]
        if start == stop:
            return []
        first, last = start // ROW_TOKENS, (stop - 1) // ROW_TOKENS
        row = int(self._first_row[document])
        column = self._rows[row + first : row + last + 1]["input_ids"]
        ids = np.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks])
        begin = first * ROW_TOKENS
        tokens: list[int] = ids[start - begin : stop - begin].tolist()
        return tokens

    @classmethod
    def build(
        cls,
        source: str,
        tokenizer: Any,
        bos_token_id: int | None,
        *,
        cache: Path | None = None,
        max_tokens: int | None = None,
        vocabulary: int | None = None,
        progress: Callable[[int], None] = lambda num_tokens: None,
    ) -> TokenStore:
        """Returns the store of a text source: the one in the cache, else a new one.

        Args:
            source: What ``--text`` can name.
            tokenizer: A Hugging Face tokenizer.
            bos_token_id: Put first in every document; None for none. Pre-tokenized documents are used as they are.
            cache: Folder of stores; :func:`cache_folder` by default.
            max_tokens: Stop reading after so many tokens; the last document is cut there. None for all.
            vocabulary: Tokens that the model knows, to be checked; None if that is not known.
            progress: Called repeatedly with the number of tokens made so far.

        Raises:
            DataError: If the source cannot be read, or holds a token that the model does not know.
            ConfigError: If the cache cannot be written.
        """
        key = {
            "format": FORMAT,
            "source": source_identity(source),
            "tokenizer": tokenizer_hash(tokenizer),
            "bos_token_id": bos_token_id,
            "max_tokens": max_tokens,
        }
        folder = (cache or cache_folder()) / content_id(key)
        store = cls.find(folder)
        is_new = store is None
        if store is None:
            documents = open_source(source)
            with scratch_folder(folder) as scratch:
                _write(scratch, source, _rows(documents, tokenizer, bos_token_id, max_tokens, vocabulary), progress)
                publish(scratch, folder, lambda there: cls.find(there) is not None)
            store = cls.find(folder)
            if store is None:
                raise ConfigError(f"The tokens in {folder} are damaged right after they were written.", CACHE_HINT)
        check_vocabulary(source, store.largest_token, vocabulary)
        store.is_new = is_new
        return store

    def discard(self) -> None:
        """Removes a store that was built a moment ago, because nothing can be made of it; an older one stays."""
        if self.is_new:
            shutil.rmtree(self._folder, ignore_errors=True)
            with suppress(OSError):  # the first that is not empty
                for place in self._folder.parents:
                    place.rmdir()

    @classmethod
    def find(cls, folder: Path) -> TokenStore | None:
        """Returns the store in a folder, or None if there is no complete one."""
        try:
            return cls(folder)
        except (OSError, ValueError, KeyError, TypeError):  # Arrow's own errors are ValueErrors and OSErrors
            return None


def tokenizer_hash(tokenizer: Any) -> str:
    """Returns a hash of everything that decides a tokenizer's tokens."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        content = json.loads(backend.to_str())
        for state in ("truncation", "padding"):  # they belong to the last call, not to the tokenizer
            content.pop(state, None)
    else:
        content = [type(tokenizer).__name__, tokenizer.get_vocab(), repr(getattr(tokenizer, "init_kwargs", None))]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _rows(
    documents: Iterator[Document],
    tokenizer: Any,
    bos_token_id: int | None,
    max_tokens: int | None,
    vocabulary: int | None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Yields document and tokens of each row; only the last row of a document has fewer than ``ROW_TOKENS``."""
    left = max_tokens
    current, held = -1, np.empty(0, dtype=np.int64)
    for document, ids in tokenize_documents(documents, tokenizer, bos_token_id):
        check_vocabulary(f"Document {document}", int(ids.max(initial=-1)), vocabulary)
        if document != current:
            if len(held):
                yield current, held
            current, held = document, ids[:0]
        ids = ids[:left]
        left = None if left is None else left - len(ids)
        held = np.concatenate([held, ids])
        while len(held) >= ROW_TOKENS:
            yield current, held[:ROW_TOKENS]
            held = held[ROW_TOKENS:]
        if left == 0:
            break
    if len(held):
        yield current, held


def _write(scratch: Path, source: str, rows: Iterator[tuple[int, np.ndarray]], progress: Callable[[int], None]) -> None:
    """Writes the rows and, last, the facts about them."""
    from datasets import Features, Sequence, Value
    from datasets.arrow_writer import ArrowWriter

    path = scratch / _TOKENS_FILE
    features = Features({"document": Value("int64"), "input_ids": Sequence(Value("int32"))})
    digest = hashlib.sha256()
    num_tokens, last, largest = 0, -1, -1
    with writing(scratch):
        writer = ArrowWriter(path=str(path), features=features, writer_batch_size=_ROWS_IN_MEMORY)
    with closing(writer):
        for document, ids in rows:
            with writing(scratch):
                writer.write({"document": document, "input_ids": ids.astype(np.int32)})
            digest.update(f"{document}:{len(ids)}:".encode() + ids.astype("<i4").tobytes())
            num_tokens, last, largest = num_tokens + len(ids), document, max(largest, int(ids.max()))
            progress(num_tokens)
        with writing(scratch):
            writer.finalize()
    facts = {
        "source": source,
        "num_documents": last + 1,
        "num_tokens": num_tokens,
        "largest_token": largest,
        "fingerprint": digest.hexdigest(),
        "num_bytes": path.stat().st_size,
    }
    with writing(scratch), path.open("r+b") as file:
        os.fsync(file.fileno())
    write_json(scratch / _FACTS_FILE, facts)


def _document_lengths(table: Any, num_documents: int) -> np.ndarray:
    """Returns the tokens of each document, ``(documents,)``; reads where rows end, not what is in them."""
    import pyarrow.compute

    rows = pyarrow.compute.list_value_length(table.column("input_ids")).to_numpy()
    documents = table.column("document").to_numpy()
    return np.bincount(documents, weights=rows, minlength=num_documents).astype(np.int64)
