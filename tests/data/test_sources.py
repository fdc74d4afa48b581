"""Text sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ropectl.data.sources import open_source
from ropectl.errors import DataError


def test_file_folder_and_glob(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
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


@pytest.mark.parametrize("source", ["no/such/file", "builtin:nothing", "no/such/*.txt"])
def test_missing_text_is_refused(source: str) -> None:
    with pytest.raises(DataError):
        list(open_source(source))


def test_hidden_folders_are_left_out(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index").write_bytes(b"\xff\xfe")
    (tmp_path / "a.txt").write_text("eins")
    assert [d.text for d in open_source(str(tmp_path))] == ["eins"]


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
