"""Text sources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ropectl.data.sources as sources
from ropectl.data.address import parse_address
from ropectl.data.documents import Document
from ropectl.data.sources import all_sources, document_rule, open_source, source_identity
from ropectl.data.text_source import TextSource
from ropectl.errors import DataError


def test_file_folder_and_glob(tmp_path: Path) -> None:
    for folder in ("b", ".git"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".git" / "index").write_bytes(b"\xff\xfe")
    for name, text in (("b/two.txt", "zwei"), ("a.txt", "eins"), (".hidden", "no"), ("c.md", "drei")):
        (tmp_path / name).write_text(text)
    assert [d.text for d in open_source(str(tmp_path / "a.txt"))] == ["eins"]
    assert [d.text for d in open_source(str(tmp_path))] == ["eins", "zwei", "drei"]
    assert [d.text for d in open_source(str(tmp_path / "**" / "*.txt"))] == ["eins", "zwei"]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join([json.dumps({"text": "a", "body": "b"}), "", json.dumps({"text": "c", "body": "d"})]))
    assert [d.text for d in open_source(str(path))] == ["a", "c"]
    assert [(d.name, d.text) for d in open_source(f"{path}#body")] == [(f"{path}:1", "b"), (f"{path}:3", "d")]
    with pytest.raises(DataError, match=r"line 1.*'title'"):
        list(open_source(f"{path}#title"))


@pytest.mark.parametrize(
    "line", [b'{"text": null}', b'{"text": 5}', b"[1]", b'{"text": "\xff"}', b'{"text": "\\ud800"}']
)
def test_json_lines_without_text_are_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(line)
    with pytest.raises(DataError):
        list(open_source(str(path)))


def test_binary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        list(open_source(str(path)))


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("eins")
    documents = open_source(str(path))
    path.unlink()
    with pytest.raises(DataError, match="Cannot read"):
        list(documents)


def test_json_lines_of_tokens(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"text": "a", "input_ids": [5, 6]}))
    assert list(open_source(str(path))) == [Document(f"{path}:1", "", (5, 6))]
    assert [d.text for d in open_source(f"{path}#text")] == ["a"]
    for wrong in ("[1, -2]", "[1, 2.0]", "[true]", "[4294967296]", "[[1]]"):
        path.write_text(f'{{"input_ids": {wrong}}}')
        with pytest.raises(DataError):
            list(open_source(str(path)))


def test_a_name_with_separators_in_it_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("c#.txt", "12:30.txt", "a:b#c.txt"):
        Path(name).write_text(name)
        assert [d.text for d in open_source(name)] == [name]
        assert [d.text for d in open_source(str(tmp_path / name))] == [name]
    Path("x#y").mkdir()
    Path("x#y/z.jsonl").write_text('{"body": "b"}')
    assert [d.text for d in open_source("x#y/z.jsonl#body")] == ["b"]
    assert [d.text for d in open_source("x#y/*.jsonl#body")] == ["b"]
    Path("x#y/z.jsonl").write_text('{"text": "t"}')
    assert [d.text for d in open_source("x#y/*.jsonl")] == ["t"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://host/x.txt", ("https://host/x.txt", "", "", "")),
        ("C:\\texts\\a.txt", ("C:\\texts\\a.txt", "", "", "")),
        ("C:\\texts:train", ("C:\\texts", "", "train", "")),
        ("owner/name,en:train#a:b", ("owner/name", "en", "train", "a:b")),
        ("name#", ("name", "", "", "")),
        ("a#b/*.jsonl#body", ("a#b/*.jsonl", "", "", "body")),
        ("\0:x", ("\0", "", "x", "")),
        ("", ("", "", "", "")),
    ],
)
def test_addresses_are_taken_apart(text: str, expected: tuple[str, ...]) -> None:
    assert parse_address(text, ",:#") == expected


@pytest.mark.parametrize(
    "source", ["no/such/file", "https://host/x.txt", "C:\\texts\\a.txt", "no\0file", "~nobody-of-this-name/x"]
)
def test_missing_text_is_reported(source: str) -> None:
    with pytest.raises(DataError, match="There is no text at"):
        open_source(source)


@pytest.mark.parametrize(("source", "message"), [("builtin:no", "no text source"), ("no/such/*.txt", "holds no files")])
def test_other_kinds_of_missing_text(source: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_source(source)


def test_identity_changes_with_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("eins")
    before = source_identity(str(tmp_path))
    assert source_identity(str(tmp_path)) == before != source_identity(f"{tmp_path}/*.txt#f")
    (tmp_path / "a.txt").write_text("zwei!")
    assert source_identity(str(tmp_path)) != before
    before = source_identity(str(tmp_path))
    (tmp_path / "b.txt").write_text("drei")
    assert source_identity(str(tmp_path)) != before
    assert source_identity("builtin:stdlib") != source_identity("builtin:stdlib-train")


class Letters(TextSource):
    """Letters as documents."""

    name = "letters"
    spelling = "letters:ABC"
    help = "`letters:ABC`, a document a letter"
    names = ("letters:xyz",)

    def matches(self, source: str) -> bool:
        return source.startswith("letters:")

    def documents(self, source: str) -> Iterator[Document]:
        return (Document(letter, letter) for letter in source.removeprefix("letters:"))

    def identity(self, source: str) -> Any:
        return source


def test_a_new_kind_of_source_names_itself_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"letters": Letters(), **sources.all_sources()}
    monkeypatch.setattr(sources, "all_sources", lambda: kinds)
    assert [d.text for d in open_source("letters:ab")] == ["a", "b"]
    assert source_identity("letters:ab") == ["letters", "letters:ab"]
    assert "letters:ABC" in sources.source_spellings() and "letters:xyz" in sources.source_names()
    with pytest.raises(DataError) as refused:
        open_source("no such file")
    assert sources.source_spellings() in refused.value.hint


def test_a_file_is_what_nothing_else_is() -> None:
    *others, last = sources.all_sources()
    assert {"builtin", "hub", "saved"} <= set(others) and last == "files"


def test_every_kind_says_what_a_document_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "rows.jsonl").write_text('{"text": "x"}')
    rules = {
        "builtin:stdlib": "a module is a document",
        "hf:some/name": "a row is a document",
        str(tmp_path / "a.txt"): "a file is a document",
        str(tmp_path): "a file is a document",
        f"{tmp_path}/*.jsonl#text": "a row is a document",
    }
    assert {source: document_rule(source) for source in rules} == rules
    assert all(kind.document for kind in all_sources().values())
    assert Letters().document_rule("letters:") == "", "a kind of a package need not say"
