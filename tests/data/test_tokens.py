"""BOS policy and the choice of documents."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.data.documents import Document
from ropectl.data.selection import select_documents
from ropectl.data.tokens import bos_token
from ropectl.errors import ConfigError, DataError
from ropectl.evaluate.perplexity.windows import Window


def texts(*lengths: int) -> list[Document]:
    """Documents whose texts are one token per character, plus BOS."""
    return [Document(f"d{i}", "~" * length) for i, length in enumerate(lengths)]


class Characters:
    """One token per character; adds no BOS on its own."""

    bos_token_id: int | None = 1

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [ord(character) for character in text]


def test_bos_policies(tokenizer: Any) -> None:
    """``auto`` does what the tokenizer does."""
    assert bos_token(tokenizer, "auto") == tokenizer.bos_token_id
    assert bos_token(tokenizer, "never") is None
    assert bos_token(Characters(), "auto") is None
    assert bos_token(Characters(), "always") == bos_token(Characters(), "available") == 1


def test_bos_refusals(tokenizer: Any) -> None:
    without = Characters()
    without.bos_token_id = None
    assert bos_token(without, "auto") is None and bos_token(without, "available") is None
    with pytest.raises(ConfigError, match="no beginning-of-sequence"):
        bos_token(without, "always")
    with pytest.raises(ConfigError, match="sometimes"):
        bos_token(tokenizer, "sometimes")


def test_documents_long_enough_for_every_length_are_taken_in_order() -> None:
    chosen = select_documents(texts(50, 200, 99, 300, 100, 400), Characters(), None, [20, 100], limit=3)
    assert [document.name for document in chosen.documents] == ["d1", "d3", "d4"]
    assert {len(document.input_ids) for document in chosen.documents} == {100}
    assert (chosen.length, chosen.num_seen) == (100, 5)


def test_bos_counts_as_a_token_and_comes_once() -> None:
    """The window holds BOS and one token less of text."""
    chosen = select_documents(texts(100), Characters(), 1, [100, 50], limit=3)
    ids = chosen.documents[0].input_ids
    assert len(ids) == 100 and ids[0] == 1 and ids.count(1) == 1
    tail = Window(0, 51, 100, 10).input_ids(chosen)
    assert len(tail) == 50 and tail[0] == 1 and tail.count(1) == 1 and tail[1:] == ids[-49:]
    assert Window(0, 0, 100, 10).input_ids(chosen) == ids


@pytest.mark.parametrize("characters", [10, 5000, 30_000])
def test_long_texts_are_tokenized_no_further_than_needed(tokenizer: Any, characters: int) -> None:
    """The first tokens are those of the whole text, whatever the length of a token."""
    text = ("def f(x):\n    return x + 1\n" * 3000)[:characters] + " " * 40_000 + "end"
    seen: list[int] = []

    class Watched:
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            seen.append(len(text))
            return list(tokenizer.encode(text, add_special_tokens=add_special_tokens))

    expected = tokenizer.encode(text, add_special_tokens=False)
    for length in (2, 100, 1000):
        chosen = select_documents([Document("d", text)], Watched(), None, [length], limit=1)
        assert chosen.documents[0].input_ids == expected[:length]
    assert min(seen) < len(text)


def test_shorter_lengths_decide_where_no_document_is_long_enough() -> None:
    chosen = select_documents(texts(50, 120, 99), Characters(), None, [40, 100, 1000], limit=9)
    assert chosen.length == 100 and len(chosen.documents) == 1 and chosen.longest == 120
    nothing = select_documents(texts(5, 6), Characters(), None, [40], limit=9)
    assert (nothing.documents, nothing.length, nothing.num_seen, nothing.longest) == ([], 0, 2, 6)


def test_tokens_of_others_are_taken_as_they_are_with_one_bos() -> None:
    """What every window begins with is put first where it is missing, and never twice."""
    tokens = [Document("with", "", (1, *range(10, 40))), Document("without", "", tuple(range(10, 40)))]
    chosen = select_documents(tokens, Characters(), 1, [20], limit=2)
    assert [document.input_ids for document in chosen.documents] == [[1, *range(10, 29)]] * 2
    plain = select_documents(tokens, Characters(), None, [20], limit=2)
    assert [document.input_ids for document in plain.documents] == [[1, *range(10, 29)], list(range(10, 30))]
    assert select_documents(tokens, Characters(), 1, [500], limit=2).longest == 31


def test_tokens_that_the_model_does_not_know_are_refused() -> None:
    tokens = [Document("d", "", (1, 1024, 3))]
    assert select_documents(tokens, Characters(), None, [2], limit=1, vocabulary=1025).length == 2
    with pytest.raises(DataError, match="d holds the token 1024"):
        select_documents(tokens, Characters(), None, [2], limit=1, vocabulary=1024)
