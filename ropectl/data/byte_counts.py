"""Counts the bytes of text that tokens cover, which make losses of different tokenizers comparable.

A token ends where its characters end; what is between two tokens (a space that a tokenizer drops) belongs to
the later one, and a character that is split into several tokens belongs to the first of them. So the bytes of
consecutive ranges add up to those of the whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

#: Takes the first index and the one after the last, returns the UTF-8 bytes; None where they are unknown.
ByteCount = Callable[[int, int], int | None]

#: Tokens that are decoded beyond those wanted: a character that is cut changes only the last few.
DECODE_MARGIN = 8

_REPLACEMENT = "\ufffd"


def encode_with_offsets(tokenizer: Any, text: str) -> tuple[list[int], list[tuple[int, int]] | None]:
    """Returns the tokens of a text without special ones, and the characters of each where the tokenizer gives them."""
    if not getattr(tokenizer, "is_fast", False):
        return list(tokenizer.encode(text, add_special_tokens=False)), None
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return encoded["input_ids"], encoded["offset_mapping"]


def count_by_offsets(text: str, offsets: Sequence[tuple[int, int]], num_head: int) -> ByteCount:
    """Returns the count of bytes by token index.

    Args:
        text: What was tokenized.
        offsets: First character and the one after the last, by token.
        num_head: Tokens before those of the text; they have no bytes.
    """
    return count_by_ends(byte_ends(text, offsets), num_head)


def byte_ends(text: str, offsets: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yields the bytes of a text up to the end of each token; arguments as for :func:`count_by_offsets`."""
    plain, size, done = text.isascii(), 0, 0
    for _, end in offsets:
        if end > done:
            size += end - done if plain else len(text[done:end].encode())
            done = end
        yield size


def count_by_ends(ends: Iterable[int], num_head: int) -> ByteCount:
    """Returns the count of bytes by token index.

    Args:
        ends: Bytes of the text up to the end of each token.
        num_head: Tokens before those of the text; they have no bytes.
    """
    before = array("Q", bytes(8 * (num_head + 1)))  # up to the beginning, and to the end of each
    before.extend(ends)
    return lambda start, stop: int(before[stop] - before[start])


def count_in_window(count: ByteCount, first: int, num_head: int) -> ByteCount:
    """Returns the count of bytes by index in a window, which begins with the same head as its document.

    Args:
        count: The count by index in the document.
        first: Tokens of text before those of the window.
        num_head: Tokens before those of the text; they have no bytes.
    """
    return lambda start, stop: count(first + max(start, num_head), first + max(stop, num_head))


def count_by_decoding(tokenizer: Any, input_ids: Sequence[int]) -> ByteCount | None:
    """Returns the count of bytes by token index, for a tokenizer without offsets; None if it cannot decode.

    Special tokens have no bytes. A range that ends inside a character has an unknown number, and so has one with the
    token for unknown text.
    """
    if not hasattr(tokenizer, "decode"):
        return None
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown in [getattr(tokenizer, name, None) for name in ("bos_token_id", "eos_token_id", "pad_token_id")]:
        unknown = None  # GPT-2 uses one token for unknown text and between documents

    def size(ids: Sequence[int]) -> int | None:
        text: str = tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return None if _REPLACEMENT in text else len(text.encode())

    def count(start: int, stop: int) -> int | None:
        if unknown is not None and unknown in input_ids[start:stop]:
            return None
        before = max(0, start - 1)  # decoded with it: a space before the first token of a text would be dropped
        context, both = size(input_ids[before:start]), size(input_ids[before:stop])
        return None if context is None or both is None else both - context

    return count


def count_of_tokens(tokenizer: Any, input_ids: Sequence[int], num_head: int, count: int) -> ByteCount | None:
    """Returns the count of bytes by token index for tokens that came without their text.

    Exact where the tokenizer makes the same tokens of the text that it decodes them to; else by decoding each range.

    Args:
        tokenizer: A Hugging Face tokenizer, that of the tokens.
        input_ids: Tokens, after the beginning-of-sequence token where there is one; more than ``count`` if there are.
        num_head: Number of them that are not text.
        count: Tokens whose bytes are wanted.
    """
    if getattr(tokenizer, "is_fast", False):
        wanted = list(input_ids[num_head : count + DECODE_MARGIN])
        if not set(wanted) & set(tokenizer.all_special_ids):
            text = tokenizer.decode(wanted, clean_up_tokenization_spaces=False)
            ids, offsets = encode_with_offsets(tokenizer, text)
            num_text = count - num_head
            if offsets is not None and ids[:num_text] == wanted[:num_text]:
                return count_by_offsets(text, offsets[:num_text], num_head)
    return count_by_decoding(tokenizer, input_ids[:count])
