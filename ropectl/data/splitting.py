"""Cuts documents into disjoint windows of equally many tokens, and chooses windows that are spread evenly over each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ropectl.data.byte_counts import (
    ByteCount,
    byte_ends,
    count_by_decoding,
    count_by_ends,
    count_in_window,
    count_of_tokens,
    encode_with_offsets,
)
from ropectl.data.documents import Document
from ropectl.data.tokenizing import text_parts
from ropectl.data.tokens import Encoding, PossibleWindows, TokenizedDocument, fragment_encoding

#: No more text than this is tokenized only to say how many windows there would be [characters]: a few seconds.
COUNTED_CHARACTERS = 1 << 22


@dataclass(frozen=True)
class WholeDocument:
    """All tokens of a document, to be cut into windows. What is left after the last whole window belongs to none.

    Attributes:
        name: The document's name.
        head: The beginning-of-sequence token, with which every window begins; empty for none.
        input_ids: The tokens of the text, without it.
        byte_count: Returns the bytes of tokens ``[start, stop)`` of head and text; None where that is unknown.
    """

    name: str
    head: list[int]
    input_ids: Sequence[int]
    byte_count: ByteCount | None

    def num_windows(self, size: int) -> int:
        """Returns how many disjoint windows of ``size`` tokens the document holds, head included."""
        return len(self.input_ids) // (size - len(self.head))

    def window(self, number: int, size: int) -> TokenizedDocument:
        """Returns one of them, counted from 0."""
        num_head = len(self.head)
        first, stop = number * (size - num_head), (number + 1) * (size - num_head)
        counter = None if self.byte_count is None else count_in_window(self.byte_count, first, num_head)
        return TokenizedDocument(window_name(self.name, number), [*self.head, *self.input_ids[first:stop]], counter)


def window_name(document: str, number: int) -> str:
    """Returns the name of a window, counted from 0; in names they are counted from 1."""
    return f"{document}[{number + 1}]"


def whole_document(document: Document, tokenizer: Any, head: list[int]) -> WholeDocument:
    """Returns all tokens of a document.

    Args:
        document: Text, or tokens; tokens that already begin with the head do not get a second one.
        tokenizer: A Hugging Face tokenizer.
        head: The beginning-of-sequence token; empty for none.
    """
    if document.input_ids is not None:
        own = _without_head(document.input_ids, head)
        every = [*head, *own]
        return WholeDocument(document.name, head, own, count_of_tokens(tokenizer, every, len(head), len(every)))
    ids, ends = array("i"), array("Q")
    num_bytes, has_offsets = 0, True
    for part, (part_ids, offsets) in _encodings(document.text, tokenizer):
        ids.extend(part_ids)
        if offsets is None:
            has_offsets = False
        else:
            ends.extend(num_bytes + end for end in byte_ends(part, offsets))
            num_bytes += len(part.encode())
    counter = count_by_ends(ends, len(head)) if has_offsets else count_by_decoding(tokenizer, [*head, *ids])
    return WholeDocument(document.name, head, ids, counter)


def shares_in_turn(num_documents: int, count_of: Callable[[int], int], limit: int) -> list[int]:
    """Returns how many each gives where one after the other gives one, in turn, until ``limit`` are there or none is left.

    Args:
        num_documents: How many take turns.
        count_of: Returns how many one of them has, at least one; asked only of those whose second turn comes.
        limit: Most of all together.
    """
    shares, left = [0] * num_documents, limit
    giving, turn = list(range(num_documents)), 0
    while left and giving:
        gave = []
        for index in giving:
            if left and (turn == 0 or count_of(index) > turn):
                gave.append(index)
                shares[index], left = turn + 1, left - 1
        giving, turn = gave, turn + 1
    return shares


def spread_evenly(count: int, share: int) -> list[int]:
    """Returns ``share`` of the numbers below ``count``: the first of each of as many equal sections.

    A single one is 0, so that one window of a document is its beginning, as without cutting.
    """
    return [index * count // share for index in range(share)]


def count_windows(documents: Iterable[Document], tokenizer: Any, head: list[int], size: int) -> PossibleWindows:
    """Returns how many windows documents hold, of which each holds at least one.

    Args:
        documents: The documents.
        tokenizer: A Hugging Face tokenizer.
        head: The beginning-of-sequence token, with which every window begins; empty for none.
        size: Tokens of a window, head included.
    """
    count, left, is_least = 0, COUNTED_CHARACTERS, False
    for document in documents:
        num_tokens = 0
        if document.input_ids is not None:
            num_tokens = len(_without_head(document.input_ids, head))
        for part, (ids, _) in _encodings(document.text, tokenizer):
            num_tokens += len(ids)
            left -= len(part)
            if left <= 0:
                is_least = True
                break
        count += max(1, num_tokens // (size - len(head)))
    return PossibleWindows(size, count, is_least)


def _without_head(input_ids: Sequence[int], head: list[int]) -> Sequence[int]:
    return input_ids[len(head) :] if list(input_ids[: len(head)]) == head else input_ids


def _encodings(text: str, tokenizer: Any) -> Iterator[tuple[str, Encoding]]:
    """Yields the parts of a text with their tokens, which together are those of the whole."""
    encode, contexts = partial(encode_with_offsets, tokenizer), dict[str, list[int]]()
    for start, stop in text_parts(text):
        part = text[start:stop]
        yield part, fragment_encoding(encode, part, contexts) if start else encode(part)
