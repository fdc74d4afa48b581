"""Tokenizes documents as a stream: in bounded memory, whatever their number and length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ropectl.data.documents import Document
from ropectl.data.tokens import encode_fragment

#: A text longer than this is tokenized in parts [characters].
PART_CHARACTERS = 1 << 18

#: The distance before that in which a good place to cut is looked for [characters].
CUT_SEARCH = 1 << 13

#: Texts that are tokenized at once: the tokenizer works on several in parallel.
BATCH_TEXTS, BATCH_CHARACTERS = 256, 1 << 18

#: Places to cut, best first: after a single line break or before a single space, between other characters.
#: No common tokenizer joins characters across the first; spaces may begin a word's token, so they go with the word.
_CUTS = (re.compile(r"(?<=\S\n)(?=\S)"), re.compile(r"(?<=\S)(?= \S)"))


class _TextPiece(NamedTuple):
    document: int
    text: str
    is_first: bool


def tokenize_documents(
    documents: Iterable[Document], tokenizer: Any, bos_token_id: int | None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yields the tokens of documents in order, in parts: ``(number of the document, tokens int64)``.

    Documents are numbered from 0, without those that are empty. Each begins with BOS where there is one;
    a pre-tokenized document is used as it is. Not much more than one batch of text is held at a time,
    apart from the document that the source has just read.

    A long text is cut where tokens cannot join: after a line break between other characters, else before
    a space between words. Each part is tokenized as the part of a text, so the tokens are those of
    the whole. Only text without either for thousands of characters (base64) is cut anywhere, which can
    change the few tokens around that place.

    Args:
        documents: In the source's order, read one at a time.
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first in every document that is text; None for none.
    """
    head = [] if bos_token_id is None else [bos_token_id]
    numbers = count()
    batch: list[_TextPiece] = []
    characters = 0
    for document in documents:
        if document.input_ids is not None:
            yield from _tokens(batch, tokenizer, head)
            batch, characters = [], 0
            if document.input_ids:
                yield next(numbers), np.asarray(document.input_ids, dtype=np.int64)
            continue
        number = next(numbers) if document.text else None
        for start, stop in text_parts(document.text):
            assert number is not None
            batch.append(_TextPiece(number, document.text[start:stop], start == 0))
            characters += stop - start
            if len(batch) >= BATCH_TEXTS or characters >= BATCH_CHARACTERS:
                yield from _tokens(batch, tokenizer, head)
                batch, characters = [], 0
    yield from _tokens(batch, tokenizer, head)


def text_parts(text: str, size: int = PART_CHARACTERS, search: int = CUT_SEARCH) -> Iterator[tuple[int, int]]:
    """Yields beginning and end of the parts of a text [characters]; one part for a text of at most ``size``.

    Args:
        text: Any text.
        size: Most characters of a part.
        search: Characters before that end in which a place to cut is looked for.
    """
    start = 0
    while len(text) - start > size:
        stop = _cut(text, start + size, min(search, size - 1))
        yield start, stop
        start = stop
    if start < len(text):
        yield start, len(text)


def _cut(text: str, latest: int, search: int) -> int:
    """Returns the last good place at or before ``latest``."""
    for pattern in _CUTS:
        found = -1
        for match in pattern.finditer(text, latest - search, latest + 2):
            if match.start() <= latest:
                found = match.start()
        if found > 0:
            return found
    return latest


def _tokens(batch: list[_TextPiece], tokenizer: Any, head: list[int]) -> Iterator[tuple[int, np.ndarray]]:
    firsts = [part.text for part in batch if part.is_first]
    encoded = iter(tokenizer(firsts, add_special_tokens=False, verbose=False)["input_ids"] if firsts else [])
    for part in batch:
        ids = head + next(encoded) if part.is_first else encode_fragment(tokenizer, part.text)
        yield part.document, np.asarray(ids, dtype=np.int64)
