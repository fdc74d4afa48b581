"""Selects the documents, or the windows of documents, that a measurement scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from ropectl.data.byte_counts import (
    DECODE_MARGIN,
    ByteCount,
    count_by_decoding,
    count_by_offsets,
    count_of_tokens,
    encode_with_offsets,
)
from ropectl.data.documents import Document
from ropectl.data.splitting import (
    WholeDocument,
    count_windows,
    shares_in_turn,
    spread_evenly,
    whole_document,
    window_name,
)
from ropectl.data.tokens import DocumentSet, Encoding, TokenizedDocument, check_vocabulary

#: Characters that are tokenized at first for each wanted token; the rest follows where tokens turn out longer.
CHARACTERS_PER_TOKEN = 16

#: Tokens before a cut that the cut may have changed.
CUT_MARGIN = 256


def select_documents(
    documents: Iterable[Document],
    tokenizer: Any,
    bos_token_id: int | None,
    lengths: list[int],
    limit: int,
    vocabulary: int | None = None,
    document_tokens: int | None = None,
    few: int = 0,
) -> DocumentSet:
    """Returns the first ``limit`` documents that have the longest wanted length.

    Reading stops once they are found, so memory is bounded by them. Where no document is that long, the
    next shorter wanted length decides, and so on.

    Args:
        documents: In the source's order.
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first; None for none.
        lengths: Wanted context lengths [tokens].
        limit: Most documents to take.
        vocabulary: Tokens that the model knows; None if that is not known.
        document_tokens: Most tokens of a document to take; None cuts all at the length that decides.
        few: Where the source has fewer such documents than this, and than asked for, the windows in them are counted.

    Raises:
        DataError: If a pre-tokenized document holds a token that the model does not know.
    """
    wanted, head = sorted(set(lengths), reverse=True), [] if bos_token_id is None else [bos_token_id]
    most = max(wanted[0], document_tokens or 0)
    reading = _read(documents, tokenizer, head, wanted, most, limit, vocabulary)
    size = document_tokens or reading.size
    kept = [replace(each.tokens, input_ids=each.tokens.input_ids[:size]) for each in reading.found]
    possible = None
    if 0 < len(kept) < min(few, limit):
        size = most if reading.longest >= most else reading.size
        long_enough = [each.document for each in reading.found if len(each.tokens.input_ids) >= size]
        possible = count_windows(long_enough, tokenizer, head, size)
    return DocumentSet(kept, reading.size, reading.num_seen, reading.longest, bos_token_id, possible=possible)


def select_windows(
    documents: Iterable[Document],
    tokenizer: Any,
    bos_token_id: int | None,
    lengths: list[int],
    limit: int,
    size: int,
    vocabulary: int | None = None,
) -> DocumentSet:
    """Returns up to ``limit`` disjoint windows of the first ``limit`` documents that hold one.

    Windows are taken from the documents in turn, and those of a document are spread evenly over it. A document that gives
    one gives its beginning, and no more of it is tokenized: of ``limit`` documents or more, none is tokenized whole.
    Where no document has ``size`` tokens, windows have the longest wanted length that one has.

    Args:
        documents: In the source's order.
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first in every window; None for none.
        lengths: Wanted context lengths [tokens].
        limit: Most windows to take.
        size: Tokens of a window, BOS included; at least the shortest wanted length.
        vocabulary: Tokens that the model knows; None if that is not known.

    Raises:
        DataError: If a pre-tokenized document holds a token that the model does not know.
    """
    head, shorter = [] if bos_token_id is None else [bos_token_id], {length for length in lengths if length < size}
    reading = _read(documents, tokenizer, head, sorted({size, *shorter}, reverse=True), size, limit, vocabulary)
    size = reading.size

    @cache
    def whole(index: int) -> WholeDocument:
        return whole_document(reading.found[index].document, tokenizer, head)

    windows, clusters = [], []
    shares = shares_in_turn(len(reading.found), lambda index: whole(index).num_windows(size), limit)
    for index, share in enumerate(shares):
        if share == 1:  # the beginning, which is there already
            beginning = reading.found[index].tokens
            name = window_name(beginning.name, 0)
            windows.append(replace(beginning, name=name, input_ids=beginning.input_ids[:size]))
        else:
            numbers = spread_evenly(whole(index).num_windows(size), share)
            windows += [whole(index).window(number, size) for number in numbers]
        clusters += [index] * share
    for window in windows:
        check_vocabulary(window.name, max(window.input_ids), vocabulary)
    length = max((length for length in lengths if length <= size), default=0)
    return DocumentSet(windows, length, reading.num_seen, reading.longest, bos_token_id, clusters, size)


class _Found(NamedTuple):
    document: Document
    tokens: TokenizedDocument


@dataclass(frozen=True)
class _Reading:
    """What was read of a source.

    Attributes:
        found: The documents that are long enough, with their first tokens.
        size: The largest wanted size that one has [tokens]; 0 if there is none.
        num_seen: Documents that were read.
        longest: Tokens of the longest document seen; a lower bound where tokenizing stopped early.
    """

    found: list[_Found]
    size: int
    num_seen: int
    longest: int


def _read(
    documents: Iterable[Document],
    tokenizer: Any,
    head: list[int],
    sizes: list[int],
    most: int,
    limit: int,
    vocabulary: int | None,
) -> _Reading:
    """Reads until ``limit`` documents have the first of some descending sizes; ``most`` tokens of each are kept."""
    by_size: dict[int, list[_Found]] = {size: [] for size in sizes}
    num_seen = longest = 0
    for document in documents:
        num_seen += 1
        ids, offsets = _first_tokens(document, tokenizer, head, most)
        check_vocabulary(document.name, max(ids, default=0), vocabulary)
        longest = max(longest, len(ids))
        open_sizes = [size for size in sizes if len(ids) >= size and len(by_size[size]) < limit]
        if open_sizes:
            counter = _byte_count(document, tokenizer, ids, offsets, head, min(len(ids), most))
            found = _Found(document, TokenizedDocument(document.name, ids[:most], counter))
        for size in open_sizes:
            by_size[size].append(found)
        if len(by_size[sizes[0]]) == limit:
            break
    size = next((size for size in sizes if by_size[size]), 0)
    return _Reading(by_size.get(size, []), size, num_seen, longest)


def _first_tokens(document: Document, tokenizer: Any, head: list[int], count: int) -> Encoding:
    """Returns at least the first ``count`` tokens after ``head``, and the characters of each where they are known.

    A pre-tokenized document that already begins with the head does not get a second one.
    """
    if document.input_ids is None:
        ids, offsets = _first_of_text(tokenizer, document.text, count)
        return head + ids, offsets
    ids = list(document.input_ids[: count + DECODE_MARGIN])
    return (ids if ids[: len(head)] == head else head + ids), None


def _first_of_text(tokenizer: Any, text: str, count: int) -> Encoding:
    """Returns at least the first ``count`` tokens of a text, without tokenizing much more of a long one.

    A cut can change the last tokens before it, so more are made than are kept.
    """
    cut = CHARACTERS_PER_TOKEN * (count + CUT_MARGIN)
    ids, offsets = encode_with_offsets(tokenizer, text[:cut])
    if len(text) > cut and len(ids) < count + CUT_MARGIN:
        ids, offsets = encode_with_offsets(tokenizer, text)
    return ids, offsets


def _byte_count(
    document: Document,
    tokenizer: Any,
    ids: list[int],
    offsets: list[tuple[int, int]] | None,
    head: list[int],
    count: int,
) -> ByteCount | None:
    if document.input_ids is not None:
        return count_of_tokens(tokenizer, ids, len(head), count)
    if offsets is None:
        return count_by_decoding(tokenizer, ids[:count])
    return count_by_offsets(document.text, offsets[: count - len(head)], len(head))
