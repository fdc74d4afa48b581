"""Atomic files and content-addressed names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ropectl.errors import ConfigError
from ropectl.runs import RunFolder, content_id, write_json


def test_ids_depend_on_content_only() -> None:
    assert content_id({"a": 1, "b": [1.5, None]}) == content_id({"b": [1.5, None], "a": 1})
    assert content_id({"a": 1}) != content_id({"a": 1.5}) != content_id({"a": "1"})


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_json(tmp_path / "x.json", {"new": True})
    assert list(tmp_path.iterdir()) == []


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="Cannot write"):
        write_json(tmp_path / "file" / "cells" / "x.json", {})


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"old": True})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_json(path, {"new": True})
    assert json.loads(path.read_text()) == {"old": True} and list(tmp_path.iterdir()) == [path]


def test_numbers_that_are_not_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_only_finished_records_count(tmp_path: Path) -> None:
    folder, settings = RunFolder(tmp_path / "run"), {"kind": "x"}
    assert folder.read_cell(settings) is None
    folder.write_cell(settings, {"error": {"type": "X", "message": "y"}, "seconds": 1})
    assert folder.read_cell(settings) is None
    record = folder.write_cell(settings, {"result": {"value": 1}, "seconds": 1})
    assert folder.read_cell(settings) == record and record["versions"]["python"]
