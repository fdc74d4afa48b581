"""Stores hold the tokens of the whole texts, in bounded memory, and survive whatever happens to the cache."""

from __future__ import annotations

import json
import os
import pickle
import random
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.data import token_store, tokenizing
from ropectl.data.documents import Document
from ropectl.data.sources import open_source
from ropectl.data.text_source import TextSource
from ropectl.data.token_cache import cache_folder
from ropectl.data.token_store import ROW_TOKENS, TokenStore, tokenizer_hash
from ropectl.data.tokenizing import text_parts
from ropectl.errors import ConfigError, DataError

TEXTS = ["eins und zwei\n", "", "drei", "x = 1\n" * 50]


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    return str(path)


def token_source(path: Path, documents: list[list[int]]) -> str:
    path.write_text("\n".join(json.dumps({"input_ids": ids}) for ids in documents))
    return str(path)


def all_tokens(store: TokenStore) -> list[list[int]]:
    return [store.tokens(i, 0, int(length)) for i, length in enumerate(store.lengths)]


def leftovers(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("bos", [0, None])
def test_documents_are_tokenized_after_bos(source: str, tokenizer: Any, tmp_path: Path, bos: int | None) -> None:
    head = [] if bos is None else [bos]
    store = TokenStore.build(source, tokenizer, bos, cache=tmp_path / "cache")
    expected = [head + tokenizer.encode(text, add_special_tokens=False) for text in TEXTS if text]
    assert all_tokens(store) == expected
    assert store.lengths.tolist() == [len(ids) for ids in expected] and store.lengths.dtype == "int64"
    assert (store.num_documents, store.num_tokens) == (3, sum(map(len, expected)))
    assert store.largest_token == max(map(max, expected))


@pytest.mark.process
def test_the_standard_library_is_the_same_as_tokenized_whole(tokenizer: Any, tmp_path: Path) -> None:
    store = TokenStore.build("builtin:stdlib", tokenizer, 0, cache=tmp_path)
    for number, document in enumerate(open_source("builtin:stdlib")):
        expected = [0, *tokenizer.encode(document.text, add_special_tokens=False)]
        assert store.tokens(number, 0, int(store.lengths[number])) == expected
    assert number + 1 == store.num_documents


def test_any_part_of_a_document_of_many_rows(tmp_path: Path, tokenizer: Any) -> None:
    rng = random.Random(0)
    lengths = [ROW_TOKENS, 1, 3 * ROW_TOKENS + 17, ROW_TOKENS - 1, ROW_TOKENS + 1]
    documents = [[rng.randrange(1000) for _ in range(length)] for length in lengths]
    store = TokenStore.build(token_source(tmp_path / "x.jsonl", documents), tokenizer, 0, cache=tmp_path / "cache")
    store = pickle.loads(pickle.dumps(store))  # as a data loader's worker gets it
    assert all_tokens(store) == documents, "pre-tokenized documents are taken as they are"
    for _ in range(200):
        number = rng.randrange(len(documents))
        start, stop = sorted(rng.randint(0, lengths[number]) for _ in range(2))
        assert store.tokens(number, start, stop) == documents[number][start:stop]
    for edge in (ROW_TOKENS, 2 * ROW_TOKENS):
        assert store.tokens(2, edge - 1, edge + 1) == documents[2][edge - 1 : edge + 1]
        assert store.tokens(2, edge, edge) == []


def test_a_store_is_made_once(source: str, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    first = TokenStore.build(source, tokenizer, 0, cache=tmp_path / "cache", progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == first.num_tokens
    monkeypatch.setattr(token_store, "open_source", lambda source: pytest.fail("read again"))
    again = TokenStore.build(source, tokenizer, 0, cache=tmp_path / "cache")
    assert again.fingerprint == first.fingerprint and all_tokens(again) == all_tokens(first)
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_what_a_store_depends_on(source: str, tokenizer: Any, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    from ropectl.builtin import TINY_MODEL_DIR

    other = AutoTokenizer.from_pretrained(TINY_MODEL_DIR)
    assert tokenizer_hash(other) == tokenizer_hash(tokenizer)
    other("eins zwei drei", truncation=True, max_length=2)
    assert tokenizer_hash(other) == tokenizer_hash(tokenizer), "a call changes no tokens of the next"
    other.add_tokens(["eins"])
    cache = tmp_path / "cache"
    stores = [
        TokenStore.build(source, tokenizer, 0, cache=cache),
        TokenStore.build(source, tokenizer, None, cache=cache),
        TokenStore.build(source, tokenizer, 0, cache=cache, max_tokens=5),
        TokenStore.build(source, other, 0, cache=cache),
    ]
    Path(source).write_text('{"text": "another"}')
    stores.append(TokenStore.build(source, tokenizer, 0, cache=cache))
    assert len({store.fingerprint for store in stores}) == 5 == len(list(cache.iterdir()))


def test_fingerprints_know_where_documents_end(tmp_path: Path, tokenizer: Any) -> None:
    fingerprints = set()
    for number, documents in enumerate(([[1, 2, 3]], [[1, 2], [3]], [[1], [2, 3]], [[1, 2, 4]])):
        source = token_source(tmp_path / f"{number}.jsonl", documents)
        fingerprints.add(TokenStore.build(source, tokenizer, 0, cache=tmp_path / "cache").fingerprint)
    assert len(fingerprints) == 4


def test_an_empty_source_is_an_empty_store(tmp_path: Path, tokenizer: Any) -> None:
    store = TokenStore.build(token_source(tmp_path / "x.jsonl", [[], []]), tokenizer, 0, cache=tmp_path / "cache")
    assert (store.num_documents, store.num_tokens, store.lengths.tolist()) == (0, 0, [])


def test_tokens_that_the_model_does_not_know(tmp_path: Path, tokenizer: Any) -> None:
    source = token_source(tmp_path / "x.jsonl", [[1, 2], [3, 1024]])
    for _ in range(2):  # while it is made, and where it lies in the cache
        with pytest.raises(DataError, match=r"token 1024.*1024 tokens"):
            TokenStore.build(source, tokenizer, 0, cache=tmp_path / "cache", vocabulary=1024)
        assert TokenStore.build(source, tokenizer, 0, cache=tmp_path / "cache", vocabulary=1025).num_tokens == 4


def letters(monkeypatch: pytest.MonkeyPatch, documents: Iterator[Document]) -> str:
    """A source that is a generator of the test's own."""

    class Generated(TextSource):
        def matches(self, source: str) -> bool:
            return source == "test:"

        def documents(self, source: str) -> Iterator[Document]:
            return documents

        def identity(self, source: str) -> Any:
            return source

    Generated.name = "test"
    monkeypatch.setattr("ropectl.data.sources.all_sources", lambda: {"test": Generated()})
    return "test:"


@pytest.mark.process
def test_memory_is_that_of_a_few_documents(tmp_path: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents and Arrow buffers alive at any moment, whatever the length of the corpus."""
    alive: weakref.WeakSet[Document] = weakref.WeakSet()
    most_documents = most_bytes = 0
    num_documents, before = 150, pyarrow.total_allocated_bytes()

    def stream() -> Iterator[Document]:
        nonlocal most_documents, most_bytes
        for number in range(num_documents):
            document = Document(str(number), "", tuple(range(20_000)))
            alive.add(document)
            most_documents = max(most_documents, len(alive))
            most_bytes = max(most_bytes, pyarrow.total_allocated_bytes() - before)
            yield document

    store = TokenStore.build(letters(monkeypatch, stream()), tokenizer, 0, cache=tmp_path)
    assert store.num_tokens == num_documents * 20_000
    assert most_documents <= 2
    assert most_bytes < 4 * store.num_tokens / 4, "a quarter of the corpus at most, at 4 bytes a token"


@pytest.mark.process
def test_texts_are_read_a_batch_at_a_time(tmp_path: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def stream() -> Iterator[Document]:
        for number in range(100):
            read.append(number)
            yield Document(str(number), "some words of text\n" * 1000)

    seen: list[int] = []
    ahead: list[int] = []

    def progress(num_tokens: int) -> None:
        seen.append(num_tokens)
        ahead.append(len(read) - len(seen))

    store = TokenStore.build(letters(monkeypatch, stream()), tokenizer, 0, cache=tmp_path, progress=progress)
    assert store.num_documents == 100 == len(seen)
    assert max(ahead) <= tokenizing.BATCH_CHARACTERS // 19_000 + 1


def test_reading_stops_at_max_tokens(tmp_path: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0

    def stream() -> Iterator[Document]:
        nonlocal read
        while True:  # a hub's stream may have no end
            read += 1
            yield Document(str(read), "", tuple(range(read * 10)))

    store = TokenStore.build(letters(monkeypatch, stream()), tokenizer, 0, cache=tmp_path, max_tokens=45)
    assert store.lengths.tolist() == [10, 20, 15] and store.num_tokens == 45 and read == 3


@given(st.text(alphabet="ab \n", max_size=300), st.integers(2, 40), st.integers(1, 40))
def test_parts_are_the_text(text: str, size: int, search: int) -> None:
    parts = list(text_parts(text, size, search))
    assert "".join(text[start:stop] for start, stop in parts) == text
    assert all(0 < stop - start <= size for start, stop in parts)


def in_parts(tokenizer: Any, text: str, size: int, search: int) -> tuple[list[int], int]:
    """Tokens of a text that is tokenized in parts, as a store does, and the number of parts."""
    first, *others = [text[start:stop] for start, stop in text_parts(text, size, search)]
    ids = list(tokenizer.encode(first, add_special_tokens=False))
    for part in others:
        ids += tokenizing.encode_fragment(tokenizer, part)
    return ids, len(others) + 1


@pytest.mark.process
def test_parts_end_where_tokens_do(tokenizer: Any) -> None:
    """Between lines, else between words; each part's tokens are those of the whole."""
    rng = random.Random(0)
    words = ["def", "return", " x", "\n", "\n\n", "    ", "é", "日本", "12345", "...", "word ", "\t"]
    lines = "".join(rng.choice(words) for _ in range(20_000))
    one_line = " ".join(rng.choice(["def", "return", "日本", "x12", "..."]) for _ in range(8000))
    for text in (lines, one_line):
        ids, num_parts = in_parts(tokenizer, text, 700, 600)
        assert ids == tokenizer.encode(text, add_special_tokens=False) and num_parts > 20


@pytest.mark.process
def test_a_long_text_is_tokenized_in_parts(tmp_path: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizing, "text_parts", lambda text: text_parts(text, 1000, 900))
    text = "".join(document.text for _, document in zip(range(8), open_source("builtin:stdlib"), strict=False))
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    store = TokenStore.build(str(tmp_path / "x.txt"), tokenizer, 0, cache=tmp_path / "cache")
    assert all_tokens(store) == [[0, *tokenizer.encode(text, add_special_tokens=False)]]


@pytest.mark.parametrize("damage", ["cut", "gone", "no facts", "wrong facts", "no arrow", "a file"])
def test_a_damaged_store_is_made_again(source: str, tokenizer: Any, tmp_path: Path, damage: str) -> None:
    cache = tmp_path / "cache"
    store = TokenStore.build(source, tokenizer, 0, cache=cache)
    expected, fingerprint = all_tokens(store), store.fingerprint
    del store
    (folder,) = cache.iterdir()
    arrow, facts = folder / "tokens.arrow", folder / "store.json"
    if damage == "cut":
        arrow.write_bytes(arrow.read_bytes()[:-100])
    elif damage == "gone":
        arrow.unlink()
    elif damage == "no facts":
        facts.write_text("{")
    elif damage == "wrong facts":
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"num_tokens": 3}))
    elif damage == "no arrow":
        arrow.write_bytes(bytes(arrow.stat().st_size))
    else:
        arrow.unlink(), facts.unlink(), folder.rmdir()
        folder.write_text("not a folder")
    again = TokenStore.build(source, tokenizer, 0, cache=cache)
    assert (all_tokens(again), again.fingerprint) == (expected, fingerprint)
    assert not [name for name in leftovers(cache) if not name.endswith("damaged")]


@pytest.mark.parametrize("damaged_before", [False, True])
def test_two_at_once(source: str, tokenizer: Any, tmp_path: Path, damaged_before: bool) -> None:
    """While one is working, another process makes the same store from start to end."""
    cache = tmp_path / "cache"
    if damaged_before:
        TokenStore.build(source, tokenizer, 0, cache=cache)
        (next(cache.iterdir()) / "tokens.arrow").write_bytes(b"")
    others: list[TokenStore] = []

    def progress(num_tokens: int) -> None:
        if not others:
            others.append(TokenStore.build(source, tokenizer, 0, cache=cache))

    store = TokenStore.build(source, tokenizer, 0, cache=cache, progress=progress)
    assert all_tokens(store) == all_tokens(others[0]) and len(list(cache.iterdir())) == 1


def test_an_interrupted_build_leaves_nothing(source: str, tokenizer: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def interrupt(num_tokens: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TokenStore.build(source, tokenizer, 0, cache=cache, progress=interrupt)
    assert not cache.exists()
    store = TokenStore.build(source, tokenizer, 0, cache=cache)
    (folder,) = cache.iterdir()
    killed, running = (cache / f".{folder.name}.{name}" for name in ("1.killed", "2.running"))
    for place in (killed, running):
        place.mkdir()
        (place / "tokens.arrow").write_bytes(b"half")
    old = time.time() - 2 * 24 * 3600
    for path in (killed / "tokens.arrow", killed):
        os.utime(path, (old, old))
    (folder / "store.json").unlink()
    assert TokenStore.build(source, tokenizer, 0, cache=cache).fingerprint == store.fingerprint
    assert not killed.exists() and running.exists()


def test_a_cache_that_cannot_be_written(source: str, tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Cannot write tokens") as caught:
        TokenStore.build(source, tokenizer, 0, cache=tmp_path / "file" / "cache")
    assert "ROPECTL_CACHE" in caught.value.hint


def test_a_full_disk_is_reported(source: str, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, *arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("datasets.arrow_writer.ArrowWriter.write", fail)
    with pytest.raises(ConfigError, match="No space left on device"):
        TokenStore.build(source, tokenizer, 0, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROPECTL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "ropectl" / "tokens"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "ropectl" / "tokens"
    monkeypatch.setenv("ROPECTL_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own" / "tokens"


def test_a_slow_tokenizer_has_a_hash_too(tokenizer: Any) -> None:
    class Slow:
        def __init__(self, *words: str) -> None:
            self.init_kwargs = {"lower": False}
            self.words = words

        def get_vocab(self) -> dict[str, int]:
            return {word: number for number, word in enumerate(self.words)}

    assert tokenizer_hash(Slow("a", "b")) == tokenizer_hash(Slow("a", "b")) != tokenizer_hash(Slow("b", "a"))


def test_parts_of_a_tokenizer_that_writes_spaces_as_characters() -> None:
    """SentencePiece style: a space is put before whatever is encoded, and nothing is split before merging."""
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    space = "\u2581"
    merges = [(space, "t"), (space + "t", "h"), (space, space), ("i", "n"), (space, "in"), ("r", "e"), (space, "re")]
    alphabet = [chr(code) for code in range(33, 127)] + [space, "\n"]
    vocab = {piece: number for number, piece in enumerate([*alphabet, *("".join(pair) for pair in merges)])}
    inner = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend(space), normalizers.Replace(" ", space)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner)
    rng = random.Random(0)
    words = ["this", " then", "in", " re", "  ", "\n", "\n    ", "re\nin"]
    for text in ("".join(rng.choice(words) for _ in range(5000)), " ".join(["thin", "rein"] * 2000)):
        ids, num_parts = in_parts(tokenizer, text, 500, 400)
        assert ids == tokenizer.encode(text, add_special_tokens=False) and num_parts > 10
