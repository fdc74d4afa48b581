"""Data sets: those that ``datasets`` itself wrote are read back; the hub is asked through its own client, offline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict

from ropectl.data.documents import Document
from ropectl.data.sources import open_source, source_identity
from ropectl.data.text_sources.hub import parse_hub_address
from ropectl.errors import DataError

TEXTS = {"text": ["eins", "zwei", "drei"], "body": ["one", "two", "three"], "number": [1, 2, 3]}
TOKENS = {"input_ids": [[5, 6, 7], [8]], "text": ["a", "b"]}


def texts(source: Any) -> list[str]:
    return [document.text for document in open_source(str(source))]


def tokens(source: Any) -> list[tuple[int, ...] | None]:
    return [document.input_ids for document in open_source(str(source))]


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("hf:wiki", ("wiki", "", "train", "")),
        ("hf:owner/name,en:test#body", ("owner/name", "en", "test", "body")),
        ("hf:owner/name#body", ("owner/name", "", "train", "body")),
        ("hf:owner/name,20220301.en", ("owner/name", "20220301.en", "train", "")),
    ],
)
def test_addresses(source: str, address: tuple[str, str, str, str]) -> None:
    assert parse_hub_address(source) == address


def test_what_the_library_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamed, and no code of the data set's own is ever allowed."""
    asked: list[Any] = []

    def load_dataset(*arguments: Any, **options: Any) -> Any:
        asked.append((arguments, options))
        return Dataset.from_dict(TEXTS).to_iterable_dataset()

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert texts("hf:owner/name,en:test#body") == ["one", "two", "three"]
    assert asked == [(("owner/name", "en"), {"split": "test", "streaming": True})]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set as on the hub: two splits of files."""
    place = tmp_path / "a,b:c#d"
    place.mkdir()
    for split, row in (("train", "eins"), ("test", "zwei")):
        (place / f"{split}.jsonl").write_text(json.dumps({"text": row, "body": row.upper()}))
    return place


@pytest.mark.process
def test_a_folder_as_on_the_hub(folder: Path) -> None:
    assert texts(f"hf:{folder}") == ["eins"]
    assert texts(f"hf:{folder}:test") == ["zwei"]
    assert texts(f"hf:{folder}:test#body") == ["ZWEI"]
    assert next(open_source(f"hf:{folder}:test")).name == f"{folder}:test:0"
    before = source_identity(f"hf:{folder}")
    (folder / "train.jsonl").write_text('{"text": "another"}')
    assert source_identity(f"hf:{folder}") != before


@pytest.mark.parametrize(
    ("rest", "message", "hint"),
    [
        (":valid", "Bad split: valid.*'test'", "hf:NAME:SPLIT"),
        (",en", "BuilderConfig 'en' not found", "hf:NAME,CONFIG"),
        ("#title", "no field 'title'; it has: text, body", "#FIELD"),
    ],
)
def test_what_a_data_set_does_not_have(folder: Path, rest: str, message: str, hint: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        list(open_source(f"hf:{folder}{rest}"))
    assert hint in caught.value.hint


def test_a_script_is_never_run(tmp_path: Path) -> None:
    place = tmp_path / "scripted"
    place.mkdir()
    (place / "scripted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(DataError, match="scripts are no longer supported") as caught:
        open_source(f"hf:{place}")
    assert "never run" in caught.value.hint and not (tmp_path / "ran").exists()


def test_no_hub() -> None:
    with pytest.raises(DataError, match="'no-such-owner/no-such-name'") as caught:
        open_source("hf:no-such-owner/no-such-name")
    assert "local file" in caught.value.hint
    assert source_identity("hf:no-such-owner/no-such-name")[1][-1] is None
    with pytest.raises(DataError, match="does not name a data set"):
        open_source("hf:")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("Dataset 'a/b' is a gated dataset on the Hub.", "hf auth login"),
        ("Dataset 'a/b' doesn't exist on the Hub or cannot be accessed.", "hf auth login"),
        ("Config name is missing.\nPlease pick one among the available configs: ['a']", "hf:NAME,CONFIG"),
    ],
)
def test_errors_of_the_hub_become_one_message(monkeypatch: pytest.MonkeyPatch, message: str, hint: str) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise FileNotFoundError(message)

    monkeypatch.setattr("datasets.load_dataset", fail)
    with pytest.raises(DataError, match="Cannot read the data set 'a/b'") as caught:
        open_source("hf:a/b")
    assert hint in caught.value.hint and "\n" not in caught.value.message


def test_a_stream_that_breaks_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        column_names = ("text",)

        def select_columns(self, columns: list[str]) -> Any:
            yield {"text": "eins"}
            raise TimeoutError("the connection was lost")

    monkeypatch.setattr("datasets.load_dataset", lambda *arguments, **options: Broken())
    documents = open_source("hf:a/b")
    assert next(documents).text == "eins"
    with pytest.raises(DataError, match="the connection was lost"):
        next(documents)


def test_saved_to_disk(tmp_path: Path) -> None:
    place = tmp_path / "saved"
    Dataset.from_dict(TEXTS).save_to_disk(place)
    assert texts(place) == TEXTS["text"]
    assert texts(f"{place}#body") == TEXTS["body"]
    assert next(open_source(str(place))).name == f"{place}:0"
    with pytest.raises(DataError, match="no splits"):
        open_source(f"{place}:train")
    with pytest.raises(DataError, match="'title'; it has: text, body, number"):
        open_source(f"{place}#title")
    with pytest.raises(DataError, match="neither text nor"):
        list(open_source(f"{place}#number"))


def test_saved_splits(tmp_path: Path) -> None:
    place = tmp_path / "saved"
    splits = {name: Dataset.from_dict({"text": [name], "body": [name.upper()]}) for name in ("train", "test")}
    DatasetDict(splits).save_to_disk(place)
    assert texts(place) == ["train"] and texts(f"{place}:test") == ["test"] and texts(f"{place}:test#body") == ["TEST"]
    assert source_identity(f"{place}:test") != source_identity(str(place))
    with pytest.raises(DataError, match="no split 'valid'; it has: test, train"):
        open_source(f"{place}:valid")
    only = tmp_path / "only"
    DatasetDict({"validation": splits["test"]}).save_to_disk(only)
    assert texts(only) == ["test"], "the only split there is needs no name"


def test_a_damaged_data_set_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "saved"
    Dataset.from_dict(TEXTS).save_to_disk(place)
    next(place.glob("*.arrow")).write_bytes(b"no arrow")
    with pytest.raises(DataError, match="Cannot read the data set"):
        list(open_source(str(place)))


@pytest.mark.process
def test_tokens_are_taken_as_they_are(tmp_path: Path) -> None:
    Dataset.from_dict(TOKENS).save_to_disk(tmp_path / "saved")
    (tmp_path / "hub").mkdir()
    Dataset.from_dict(TOKENS).to_parquet(tmp_path / "hub" / "train.parquet")
    for source in (tmp_path / "saved", f"hf:{tmp_path / 'hub'}"):
        assert tokens(source) == [(5, 6, 7), (8,)] and texts(source) == ["", ""]
        assert texts(f"{source}#text") == ["a", "b"] and tokens(f"{source}#text") == [None, None]


def test_parquet_and_arrow_files(tmp_path: Path) -> None:
    place = tmp_path / "files"
    Dataset.from_dict(TEXTS).save_to_disk(tmp_path / "saved")
    place.mkdir()
    next((tmp_path / "saved").glob("*.arrow")).rename(place / "a.arrow")
    Dataset.from_dict({"text": ["vier"], "body": ["four"]}).to_parquet(place / "b.parquet")
    (place / "c.txt").write_text("fünf", encoding="utf-8")
    assert texts(place) == ["eins", "zwei", "drei", "vier", "fünf"]
    assert texts(place / "b.parquet") == ["vier"] and texts(f"{place}/*.parquet#body") == ["four"]
    assert list(open_source(str(place / "b.parquet"))) == [Document(f"{place / 'b.parquet'}:0", "vier")]
    (place / "b.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"b\.parquet"):
        texts(place / "b.parquet")


@pytest.mark.process
def test_the_library_is_imported_only_when_needed() -> None:
    code = (
        "import ropectl.data.sources as s, ropectl.data.token_store, ropectl.train.data.samples, sys;"
        "next(s.open_source('builtin:stdlib'));"
        "assert not {'datasets', 'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
