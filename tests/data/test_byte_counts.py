"""The bytes of tokens add up, and are those of the text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from ropectl.data.byte_counts import ByteCount, count_by_decoding, count_of_tokens
from ropectl.data.documents import Document
from ropectl.data.selection import select_documents

TEXTS = {
    "ascii": "def f(x):\n    return x + 1\n" * 20,
    "mixed": "Zwölf Boxkämpfer 🥊 jagen 三十六计 durch den großen Deich.\n" * 10,
}


class Slow:
    """The tokenizer without its offsets."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.all_special_ids = tokenizer.all_special_ids

    def encode(self, text: str, **options: Any) -> list[int]:
        return list(self._tokenizer.encode(text, **options))

    def decode(self, ids: list[int], **options: Any) -> str:
        return str(self._tokenizer.decode(ids, **options))


def counted(document: Document, tokenizer: Any, length: int, bos: int | None = None) -> ByteCount | None:
    (only,) = select_documents([document], tokenizer, bos, [length], 1).documents
    return only.byte_count


@pytest.mark.parametrize("bos", [0, None])
@pytest.mark.parametrize("name", TEXTS)
def test_ranges_add_up_to_the_text(tokenizer: Any, name: str, bos: int | None) -> None:
    text = TEXTS[name]
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    head = int(bos is not None)
    length = len(encoded["input_ids"]) + head
    count = counted(Document("d", text), tokenizer, length, bos)
    assert count is not None and count(0, length) == count(head, length) == len(text.encode())
    assert count(0, head) == 0
    cuts = [0, 1, 2, 3, 10, 11, 50, length // 2, length]
    assert sum(count(a, b) or 0 for a, b in pairwise(cuts)) == len(text.encode())
    for stop in cuts[3:]:
        end = encoded["offset_mapping"][stop - head - 1][1]
        assert count(0, stop) == len(text[:end].encode())


@pytest.mark.parametrize("bos", [0, None])
@pytest.mark.parametrize("name", TEXTS)
def test_tokens_without_text_have_the_same_bytes(tokenizer: Any, name: str, bos: int | None) -> None:
    """Also where the wanted part ends inside a character."""
    text = TEXTS[name]
    ids = tuple(tokenizer.encode(text, add_special_tokens=False))
    for length in (20, 41, 42, 43, 44, 45, len(ids)):
        ours = counted(Document("d", "", ids), tokenizer, length, bos)
        theirs = counted(Document("d", text), tokenizer, length, bos)
        assert ours is not None and theirs is not None
        assert [ours(0, i) for i in range(length + 1)] == [theirs(0, i) for i in range(length + 1)]


def test_a_tokenizer_without_offsets_decodes(tokenizer: Any) -> None:
    text = TEXTS["ascii"]
    for document in (Document("d", text), Document("d", "", tuple(tokenizer.encode(text, add_special_tokens=False)))):
        ours, theirs = counted(document, Slow(tokenizer), 100), counted(document, tokenizer, 100)
        assert ours is not None and theirs is not None
        assert [ours(i, i + 7) for i in range(90)] == [theirs(i, i + 7) for i in range(90)]


def test_part_of_a_character_has_no_number_of_bytes(tokenizer: Any) -> None:
    ids = tokenizer.encode("ab 🥊", add_special_tokens=False)
    count = count_by_decoding(tokenizer, ids)
    assert count is not None and count(0, len(ids)) == len("ab 🥊".encode()) and count(0, len(ids) - 1) is None
    assert count_by_decoding(object(), ids) is None


def test_special_tokens_between_texts_have_no_bytes(tokenizer: Any) -> None:
    ids = tokenizer.encode("one two three", add_special_tokens=False)
    count = counted(Document("d", "", (*ids, 0, *ids)), tokenizer, 2 * len(ids) + 1)
    assert count is not None and count(0, 2 * len(ids) + 1) == 2 * len("one two three")


def test_text_behind_an_unknown_token_is_not_counted_as_nothing() -> None:
    """Tokens that came without their text: what the tokenizer did not know has an unknown number of bytes."""
    words = Tokenizer(WordLevel({"<unk>": 0, "<s>": 1, "one": 2, "two": 3}, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", bos_token="<s>")
    count = count_of_tokens(tokenizer, [1, 2, 3, 0, 2], 1, 5)
    assert count is not None and count(1, 3) == len("one two")
    assert count(1, 5) is None and count(3, 4) is None
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<unk>", bos_token="<s>")
    count = count_of_tokens(tokenizer, [1, 2, 3, 0, 2], 1, 5)
    assert count is not None and count(1, 5) is not None, "a token between documents has no bytes"
