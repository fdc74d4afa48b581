"""Windows of documents: which ones, their tokens and their bytes, against naive selections and counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.data import splitting
from ropectl.data.documents import Document
from ropectl.data.selection import select_documents, select_windows
from ropectl.data.splitting import shares_in_turn, spread_evenly, whole_document
from ropectl.data.tokenizing import text_parts
from ropectl.data.tokens import DocumentSet, PossibleWindows, TokenizedDocument
from ropectl.errors import DataError
from tests.tasks.builders import spaced_tokenizer

BOS = 1


class Characters:
    """One token a character; counts how many it was given."""

    bos_token_id = BOS

    def __init__(self) -> None:
        self.num_characters = 0

    def encode(self, text: str, add_special_tokens: bool = True, **_: Any) -> list[int]:
        self.num_characters += len(text)
        return [ord(character) for character in text]


def naive_windows(
    texts: list[list[int]], bos: int | None, lengths: list[int], limit: int, size: int
) -> list[tuple[int, int, list[int]]]:
    """(document, number, tokens) of each window: every rule as it is said, with all tokens at hand."""
    head = [] if bos is None else [bos]
    for wanted in [size, *sorted((n for n in lengths if n < size), reverse=True)]:
        room = wanted - len(head)
        usable = [text for text in texts if len(text) >= room][:limit]
        if not usable:
            continue
        cut = [[text[i : i + room] for i in range(0, len(text) - room + 1, room)] for text in usable]
        taken = [0] * len(cut)
        for turn in range(max(map(len, cut))):  # one window of each document in turn
            for index, windows in enumerate(cut):
                if turn < len(windows) and sum(taken) < limit:
                    taken[index] += 1
        found = []
        for index, (windows, number) in enumerate(zip(cut, taken, strict=True)):
            places = [int(len(windows) * section / number + 1e-9) for section in range(number)]
            found += [(index, place, head + windows[place]) for place in places]
        return found
    return []


def document(index: int, length: int, tokenized: str) -> Document:
    """A document of distinct tokens, as text or as tokens with or without BOS."""
    characters = [5000 + 1000 * index + place for place in range(length)]
    if tokenized == "text":
        return Document(f"d{index}", "".join(map(chr, characters)))
    return Document(f"d{index}", "", (BOS,) * (tokenized == "bos") + tuple(characters))


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["text", "tokens", "bos"])), min_size=1, max_size=6),
    st.sampled_from([None, BOS]),
    st.lists(st.integers(2, 30), min_size=1, max_size=3, unique=True),
    st.integers(1, 12),
    st.integers(2, 40),
)
def test_windows_are_those_of_a_naive_selection(
    shapes: list[tuple[int, str]], bos: int | None, lengths: list[int], limit: int, size: int
) -> None:
    size = max(size, min(lengths))
    if bos is None:
        shapes = [(length, "tokens" if kind == "bos" else kind) for length, kind in shapes]
    documents = [document(index, length, kind) for index, (length, kind) in enumerate(shapes)]
    texts = [[5000 + 1000 * index + place for place in range(length)] for index, (length, _) in enumerate(shapes)]
    expected = naive_windows(texts, bos, lengths, limit, size)
    chosen = select_windows(iter(documents), Characters(), bos, lengths, limit, size)
    assert [window.input_ids for window in chosen.documents] == [tokens for _, _, tokens in expected]
    assert chosen.clusters == [index for index, _, _ in expected]
    assert [window.name.partition("[")[2] for window in chosen.documents] == [f"{n + 1}]" for _, n, _ in expected]
    names = [window.name for window in chosen.documents]
    assert len(set(names)) == len(names)
    if expected:
        assert chosen.split == len(expected[0][2])
        assert chosen.length == max(length for length in lengths if length <= chosen.split)
        of_document = {w.input_ids[-1] // 1000: w.name.partition("[")[0] for w in chosen.documents}
        assert all(name == f"d{thousands - 5}" for thousands, name in of_document.items())
    else:
        assert (chosen.documents, chosen.length, chosen.split) == ([], 0, 0)


@given(st.integers(1, 400), st.integers(1, 400))
def test_places_are_spread_evenly(count: int, share: int) -> None:
    """Distances, also that from the last to the end, differ by one at most; all there is where all is taken."""
    places = spread_evenly(count, min(share, count))
    gaps = [after - before for before, after in pairwise([*places, count])]
    assert places[0] == 0 and len(places) == min(share, count)
    assert min(gaps) >= 1 and max(gaps) - min(gaps) <= 1
    if share >= count:
        assert places == list(range(count))


@pytest.mark.parametrize(
    ("counts", "limit", "shares"),
    [
        ([1] * 12, 12, [1] * 12),
        ([40] * 12, 12, [1] * 12),
        ([41], 36, [36]),
        ([5, 1, 40], 12, [5, 1, 6]),
        ([2, 2], 36, [2, 2]),
        ([3, 3, 3], 7, [3, 2, 2]),
        ([], 5, []),
    ],
)
def test_documents_give_in_turn(counts: list[int], limit: int, shares: list[int]) -> None:
    asked = []

    def count_of(index: int) -> int:
        asked.append(index)
        return counts[index]

    assert shares_in_turn(len(counts), count_of, limit) == shares
    assert len(counts) < limit or not asked, "there is no second turn"


@pytest.mark.parametrize("bos", [None, BOS])
def test_as_many_documents_as_windows_are_what_they_are_uncut(bos: int | None) -> None:
    """One window of each of 12 books is 12 books; and nothing more of the source is read or tokenized."""
    read: list[str] = []

    def books() -> Iterator[Document]:
        for index in range(1000):
            read.append(f"d{index}")
            yield Document(f"d{index}", "b" * (200_000 if index % 2 else 50))

    tokenizer = Characters()
    cut = select_windows(books(), tokenizer, bos, [64, 100], 12, 100)
    assert len(read) == 24 and tokenizer.num_characters < 12 * 10_000
    read.clear()
    uncut = select_documents(books(), Characters(), bos, [64, 100], 12)
    assert [window.name for window in cut.documents] == [f"{document.name}[1]" for document in uncut.documents]
    assert cut.fingerprint() == uncut.fingerprint() and cut.length == uncut.length == 100
    assert cut.clusters == uncut.clusters == list(range(12)) and cut.shared_clusters == []


def test_only_documents_that_give_several_windows_are_tokenized_whole() -> None:
    """Of ten long books, twelve windows are two of the first two."""
    tokenizer = Characters()
    books = [Document(f"d{index}", "b" * 100_000) for index in range(10)]
    chosen = select_windows(books, tokenizer, None, [100], 12, 100)
    assert chosen.clusters == [0, 0, 1, 1, *range(2, 10)]
    assert [window.name for window in chosen.documents][:5] == ["d0[1]", "d0[501]", "d1[1]", "d1[501]", "d2[1]"]
    assert 200_000 < tokenizer.num_characters < 300_000


def test_one_source_document_of_several_windows() -> None:
    chosen = select_windows([Document("novel.txt", "x" * 1000)], Characters(), BOS, [50, 100], 5, 101)
    assert [window.name for window in chosen.documents] == [f"novel.txt[{n}]" for n in (1, 3, 5, 7, 9)]
    assert chosen.clusters == chosen.shared_clusters == [0] * 5
    assert (chosen.length, chosen.split, chosen.num_seen, chosen.longest) == (100, 101, 1, 1001)


def test_documents_are_clusters_of_their_own_where_nothing_is_cut() -> None:
    rows = [TokenizedDocument(name, [1, 2]) for name in "abc"]
    assert DocumentSet(rows, 2, 3, 2, None).clusters == [0, 1, 2]
    assert DocumentSet(rows, 2, 3, 2, None).shared_clusters == []
    assert DocumentSet(rows, 2, 3, 2, None, [0, 0, 1]).shared_clusters == [0, 0, 1]


def test_tokens_far_into_a_document_are_checked() -> None:
    ids = [7] * 50 + [2000] + [7] * 49
    documents = [Document("d", "", tuple(ids))]
    assert select_documents(documents, Characters(), None, [10], 9, 1024).length == 10
    with pytest.raises(DataError, match=r"d\[6\] holds the token 2000"):
        select_windows(documents, Characters(), None, [10], 36, 10, 1024)
    assert len(select_windows(documents, Characters(), None, [10], 5, 10, 1024).documents) == 5


MIXED = "Zwölf Boxkämpfer 🥊 jagen\n三十六计 durch den großen Sylter Deich; def f(x):\n    return x + 1\n" * 40


def naive_bytes(tokenizer: Any, text: str) -> list[int]:
    """The bytes of each token: what lies between the ends of the one before it and of its own."""
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    reached, found = 0, []
    for _, end in offsets:
        found.append(len(text[reached : max(end, reached)].encode()))
        reached = max(end, reached)
    return found


@pytest.mark.parametrize("bos", [None, 0])
@pytest.mark.parametrize("form", ["text", "tokens"])
@pytest.mark.parametrize("size", [10, 37, 101])
def test_bytes_of_a_window_are_those_of_its_text(tokenizer: Any, bos: int | None, form: str, size: int) -> None:
    """Of all that a window can be asked about, wherever in the document it is; together they are the document's."""
    ids = tokenizer.encode(MIXED, add_special_tokens=False)
    source = Document("d", MIXED) if form == "text" else Document("d", "", tuple(ids))
    chosen = select_windows([source], tokenizer, bos, [size], 10_000, size)
    of_tokens, head = naive_bytes(tokenizer, MIXED), int(bos is not None)
    room = size - head
    assert len(chosen.documents) == len(ids) // room
    for number, window in enumerate(chosen.documents):
        assert window.input_ids == [bos] * head + ids[number * room : (number + 1) * room]
        own = [0] * head + of_tokens[number * room : (number + 1) * room]
        assert window.byte_count is not None
        for start in range(0, size, 7):
            for stop in (start, start + 1, size):
                assert window.byte_count(start, stop) == sum(own[start:stop])
    counters = [window.byte_count for window in chosen.documents]
    total = sum(counter(0, size) or 0 for counter in counters if counter is not None)
    assert total + sum(of_tokens[len(counters) * room :]) == len(MIXED.encode())


@pytest.mark.parametrize("kind", ["bytes", "spaced"])
@pytest.mark.parametrize("head", [[], [0]])
def test_a_long_text_in_parts_has_the_tokens_and_bytes_of_the_whole(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, head: list[int], kind: str
) -> None:
    """Also with a tokenizer that puts a space before whatever it is given."""
    used = tokenizer if kind == "bytes" else spaced_tokenizer()
    text = MIXED if kind == "bytes" else "a line of words\nthat is followed by others\n" * 80
    whole = whole_document(Document("d", text), used, head)
    parts = 0

    def in_parts(text: str) -> Iterator[tuple[int, int]]:
        nonlocal parts
        for part in text_parts(text, 500, 400):
            parts += 1
            yield part

    monkeypatch.setattr(splitting, "text_parts", in_parts)
    again = whole_document(Document("d", text), used, head)
    assert list(whole.input_ids) == used.encode(text, add_special_tokens=False)
    assert parts > 5 and list(again.input_ids) == list(whole.input_ids)
    assert whole.byte_count is not None and again.byte_count is not None
    ends = range(len(whole.input_ids) + len(head) + 1)
    assert [again.byte_count(0, end) for end in ends] == [whole.byte_count(0, end) for end in ends]
    assert whole.byte_count(0, ends[-1]) == len(text.encode())


def test_a_tokenizer_without_offsets_counts_by_decoding(tokenizer: Any) -> None:
    class Slow:
        def encode(self, text: str, **options: Any) -> list[int]:
            return list(tokenizer.encode(text, add_special_tokens=False))

        def decode(self, ids: list[int], **options: Any) -> str:
            return str(tokenizer.decode(ids, **options))

    text = "def f(x):\n    return x + 1\n" * 30
    slow = select_windows([Document("d", text)], Slow(), 0, [20], 99, 20).documents
    fast = select_windows([Document("d", text)], tokenizer, 0, [20], 99, 20).documents
    assert [w.input_ids for w in slow] == [w.input_ids for w in fast]
    for one, other in zip(slow, fast, strict=True):
        assert one.byte_count is not None and other.byte_count is not None
        assert [one.byte_count(0, n) for n in range(21)] == [other.byte_count(0, n) for n in range(21)]


def test_possible_windows_are_those_that_cutting_gives() -> None:
    documents = [Document("a", "a" * 1000), Document("b", "", tuple(range(2, 150))), Document("c", "c" * 20)]
    uncut = select_documents(documents, Characters(), BOS, [30, 50], 12, few=8)
    cut = select_windows(documents, Characters(), BOS, [30, 50], 1000, 50)
    assert uncut.possible == PossibleWindows(50, 1000 // 49 + 148 // 49, False)
    assert uncut.possible is not None and uncut.possible.count == len(cut.documents)


def test_longer_documents_of_moving_windows_are_cut_at_their_size() -> None:
    documents = [Document("a", "a" * 1000), Document("b", "b" * 70)]
    found = select_documents(documents, Characters(), None, [50], 12, document_tokens=100, few=8)
    assert [len(each.input_ids) for each in found.documents] == [100, 70]
    assert found.possible == PossibleWindows(100, 10, False)
    short = select_documents(documents[1:], Characters(), None, [50], 12, document_tokens=100, few=8)
    assert short.possible == PossibleWindows(50, 1, False)


def test_no_windows_are_counted_where_documents_are_enough() -> None:
    many = [Document(f"d{i}", "x" * 300) for i in range(9)]
    assert select_documents(many, Characters(), None, [50], 12, few=8).possible is None
    assert select_documents(many, Characters(), None, [50], 4, few=8).possible is None, "as many as asked for"
    assert select_documents(many[:3], Characters(), None, [50], 12).possible is None
    assert select_documents(many[:3], Characters(), None, [500], 12, few=8).possible is None


def test_a_very_long_text_is_counted_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "COUNTED_CHARACTERS", 2000)
    monkeypatch.setattr(splitting, "text_parts", lambda text: text_parts(text, 500, 10))
    tokenizer = Characters()
    documents = [Document("a", "a" * 900), Document("b", "b" * 100_000), Document("c", "c" * 99)]
    found = select_documents(documents, tokenizer, None, [50], 12, few=8)
    assert found.possible == PossibleWindows(50, 900 // 50 + 1500 // 50 + 1, True)
    assert tokenizer.num_characters < 30_000
