"""Settings of what is scored, and what is said about it before weights load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.data.tokens import DocumentSet, PossibleWindows, TokenizedDocument
from ropectl.data.units import drawn_unit, scored_units, unit_name
from ropectl.errors import ConfigError, DataError
from ropectl.evaluate.config import CompareConfig, PerplexityConfig
from ropectl.evaluate.perplexity.prepared import prepare_perplexity
from ropectl.evaluate.scored_text import text_notes, window_tokens
from ropectl.setting_types import make_config


def documents(
    count: int = 1, length: int = 512, split: int | None = None, possible: PossibleWindows | None = None, seen: int = 1
) -> DocumentSet:
    rows = [TokenizedDocument(f"d{index}", list(range(length))) for index in range(count)]
    return DocumentSet(rows, length, seen, length, None, split=split, possible=possible)


@pytest.mark.parametrize(("given", "read"), [("auto", "auto"), ("4k", 4096), ("600", 600), (600, 600), (None, None)])
def test_how_windows_are_asked_for(given: Any, read: Any) -> None:
    for kind in (PerplexityConfig, CompareConfig):
        config = make_config(kind, {"split": given})
        assert config.split == read
        assert kind(**config.model_dump(mode="json")) == config, "what is printed is read again"


@pytest.mark.parametrize("given", ["atuo", "1", 1, 0, -3, 2.5, "4k,8k", [512], True, 2**40])
def test_what_is_no_window_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"^split = ") as refusal:
        make_config(PerplexityConfig, {"split": given})
    assert len(refusal.value.message.splitlines()) == 1


def test_more_windows_than_documents_are_scored_by_default() -> None:
    assert PerplexityConfig().most_units == CompareConfig().most_units == 12
    assert PerplexityConfig(split="auto").most_units == CompareConfig(split=512).most_units == 36
    assert PerplexityConfig(documents=5).most_units == PerplexityConfig(documents=5, split=512).most_units == 5


def test_the_size_of_windows() -> None:
    def size(split: int | str | None, document_tokens: int | None = None) -> int | None:
        return window_tokens(PerplexityConfig(split=split), [256, 1024], document_tokens)

    assert size(None) is None and size(None, 2048) is None
    assert size("auto") == 1024 and size("auto", 2048) == 2048
    assert size(256) == 256 and size(300, 2048) == 300 and size(5000) == 5000
    with pytest.raises(ConfigError, match="split = 255 is less than the shortest length, 256") as refusal:
        size(255)
    assert "--split 1024" in refusal.value.hint and "--split auto" in refusal.value.hint


@pytest.mark.parametrize("protocol", ["sliding", "overlapping"])
def test_moving_windows_say_once_how_long_documents_are(protocol: str) -> None:
    def prepared(**more: Any) -> DocumentSet:
        return prepare_perplexity(
            PerplexityConfig(protocol=protocol, lengths=(64, 128), documents=3, **more)
        ).request.documents

    assert prepared(split="auto").split == 256, "twice the longest length"
    assert prepared(split="auto", document_tokens=200).split == 200
    assert prepared(split=150).split == 150 and prepared(split=200, document_tokens=200).split == 200
    with pytest.raises(ConfigError, match="document-tokens = 300 contradicts split = 200"):
        prepared(split=200, document_tokens=300)


def test_lengths_that_no_window_holds() -> None:
    config = PerplexityConfig(text="novel.txt", split=600)
    (note,) = text_notes(documents(split=600), [256, 512, 1024, 2048], config)
    assert note.startswith("A window of 600 tokens (--split 600) holds no 1024, 2048: perplexity there is n/a.")
    assert "--split 2048" in note and "--split auto" in note
    with pytest.raises(DataError, match="holds no 1024") as refusal:
        text_notes(documents(split=600), [512, 1024], config.model_copy(update={"strict": True}))
    assert "--split 1024" in refusal.value.hint and "leave out --strict" in refusal.value.hint
    assert text_notes(documents(split=600), [256, 512], config.model_copy(update={"strict": True})) == []


def test_lengths_that_no_document_has() -> None:
    """Windows of what there is: the next shorter length decides."""
    strict = PerplexityConfig(text="novel.txt", split="auto", strict=True)
    with pytest.raises(DataError, match="has no document of 1024 tokens"):
        text_notes(documents(split=512), [512, 1024], strict)
    auto = strict.model_copy(update={"strict": False})
    assert text_notes(documents(split=512), [512, 1024], auto) == [
        "novel.txt has no document of 1024 tokens: perplexity there is n/a."
    ]
    named = auto.model_copy(update={"split": 1500})
    assert text_notes(documents(split=512), [256, 512], named) == [
        "novel.txt has no document of 1500 tokens: it is cut into windows of 512."
    ]
    both = text_notes(documents(split=512), [512, 1024, 2048], named)
    assert both[0] == "novel.txt has no document of 1024 tokens: perplexity there is n/a."
    assert both[1].startswith("A window of 1500 tokens (--split 1500) holds no 2048")


def test_a_book_is_offered_to_be_cut(tmp_path: Path) -> None:
    text = tmp_path / "novel.txt"
    text.write_text("x")
    config = PerplexityConfig(text=str(text))

    def offer(config: PerplexityConfig = config, **more: Any) -> list[str]:
        return text_notes(documents(**more), [512], config)

    windows = PossibleWindows(512, 41, False)
    assert offer(possible=windows) == [
        f"{text} is one document (a file is a document): it would give 41 windows of 512 tokens: --split auto"
    ]
    assert offer(possible=PossibleWindows(512, 41, True))[0].endswith("at least 41 windows of 512 tokens: --split auto")
    assert offer(possible=windows, seen=3) == [
        f"1 document of {text} has 512 tokens (a file is a document): it would give 41 windows of 512 tokens: --split auto"
    ]
    assert offer(count=3, possible=windows, seen=3)[0].startswith(f"3 documents of {text} have 512 tokens (a file")
    capped = config.model_copy(update={"documents": 2})
    assert offer(capped, possible=windows)[0].endswith("--split auto --documents 36")
    assert offer(capped, possible=PossibleWindows(512, 9, False))[0].endswith("--split auto --documents 9")
    assert offer(possible=None) == [] == offer(count=3, possible=PossibleWindows(512, 3, False), seen=3)


def test_what_a_run_says_of_few_documents(tmp_path: Path) -> None:
    """Without --split it is said what a document is; strict or not; with it, nothing."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"input_ids": [0, *range(5, 305)]}) + "\n" for _ in range(7)))

    def notes(**more: Any) -> list[str]:
        return prepare_perplexity(PerplexityConfig(text=str(rows), lengths=(100,), **more)).notes

    wanted = [
        f"7 documents of {rows} have 100 tokens (a row is a document): they would give 21 windows of 100 tokens: "
        "--split auto"
    ]
    assert notes() == notes(strict=True) == wanted
    assert notes(split="auto") == notes(split=100) == notes(documents=7) == notes(documents=3) == []
    rows.write_text(rows.read_text() + rows.read_text())
    assert notes() == []


@pytest.mark.parametrize(
    ("count", "split", "clusters", "words", "drawn"),
    [
        (12, None, [], "12 documents", "document"),
        (1, None, [], "1 document", "document"),
        (36, 2048, [0] * 36, "36 windows of 1 document", "window"),
        (36, 2048, [0] * 18 + [1] * 18, "36 windows of 2 documents", "document"),
        (12, 2048, [], "12 windows of 12 documents", "document"),
        (1, 2048, [], "1 window of 1 document", "document"),
    ],
)
def test_units_in_words(count: int, split: int | None, clusters: list[int], words: str, drawn: str) -> None:
    assert scored_units(count, split, clusters) == words and drawn_unit(split, clusters) == drawn
    assert unit_name(split) == ("document" if split is None else "window")
