"""A user's text as an endless stream of tokens."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.data.documents import Document
from ropectl.errors import DataError
from ropectl.tasks.text_stream import PIECE, TextStream
from tests.tasks.builders import story


def stream(tokenizer: Any, *documents: Document, vocabulary: int | None = None) -> TextStream:
    return TextStream("source", iter(documents), tokenizer, vocabulary)


def test_what_stands_at_an_index_does_not_depend_on_what_was_read(tokenizer: Any) -> None:
    documents = story("a", 50), story("b", 50)
    whole = stream(tokenizer, *documents).window(0, 2000)
    late = stream(tokenizer, *documents)
    assert [late.window(start, 7) for start in (900, 3, 1500)] == [whole[s : s + 7] for s in (900, 3, 1500)]


def test_short_text_is_repeated_and_said_to_be(tokenizer: Any) -> None:
    text = stream(tokenizer, Document("a", "one two"))
    once = tokenizer.encode("\none two\n\n", add_special_tokens=False)[1:]
    assert text.window(0, 3 * len(once)) == once * 3
    assert text.window(1, len(once)) == once[1:] + once[:1]
    assert text.repeats_within(100) == len(once) and text.repeats_within(len(once)) is None


def test_documents_are_read_no_further_than_needed(tokenizer: Any) -> None:
    def documents() -> Any:
        yield story("a", 2000)
        raise AssertionError("not needed")

    assert len(TextStream("source", documents(), tokenizer).window(0, 500)) == 500


def test_special_tokens_are_left_out(tokenizer: Any) -> None:
    """The text may hold what a tokenizer takes for one, and tokens somebody made may begin with one."""
    text = stream(tokenizer, Document("a", "word <|bos|> word"), Document("b", "", (0, 5, 6, 0, 7)))
    assert 0 not in text.window(0, 100)


@pytest.mark.process
def test_a_long_document_is_tokenized_in_pieces(tokenizer: Any) -> None:
    longest = 0

    class Counting:
        all_special_ids = tokenizer.all_special_ids

        def encode(self, text: str, **options: Any) -> list[int]:
            nonlocal longest
            longest = max(longest, len(text))
            return list(tokenizer.encode(text, **options))

    document = Document("a", "word " * PIECE)
    stream(Counting(), document).window(0, 10)
    assert longest <= PIECE + 3


@pytest.mark.parametrize("documents", [(), (Document("a", "  \n"),), (Document("a", "", ()),)])
def test_no_text_is_refused(tokenizer: Any, documents: tuple[Document, ...]) -> None:
    with pytest.raises(DataError, match="source holds no text"):
        stream(tokenizer, *documents).window(0, 1)


def test_tokens_of_another_tokenizer_are_refused(tokenizer: Any) -> None:
    with pytest.raises(DataError, match="token 5000"):
        stream(tokenizer, Document("a", "", (1, 5000)), vocabulary=1024).window(0, 1)
