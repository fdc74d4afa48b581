"""Run folders that somebody else made: a safe page, or one clear error and nothing written."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.errors import ConfigError
from ropectl.records.reading import read_record
from ropectl.report.writers.html import MAX_TEXT, shown
from tests.report.page.reader import problems, read
from tests.report.records import finetuning

Run = Callable[..., tuple[int, str, str]]
PageOf = Callable[..., str]

EVIL = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>]]>&lt;\u202eevil\u2066\x00\x1b[31m\ud800 $x$ _{}"


def spoiled(value: Any, text: str) -> Any:
    """The same record with every text that is no choice of a program replaced."""
    if isinstance(value, dict):
        return {key: item if key == "outcome" else spoiled(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [spoiled(item, text) for item in value]
    return text if isinstance(value, str) else value


def write(folder: Path, record: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.json").write_text(json.dumps(record))
    return folder


def with_values(record: Any, path: str, value: Any) -> Any:
    """A copy in which one value, named by its keys, is another."""
    changed = copy.deepcopy(record)
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place = changed
    for key in parents:
        place = place[key]
    place[last] = value
    return changed


def check_safe(html: str) -> None:
    assert problems(html) == []
    page = read(html)
    assert "alert(1)" not in page.all("script")[0].text
    shown = page.body_text
    assert not any(character in shown for character in "\u202e\u2066\x00\x1b")
    html.encode("utf-8")


@pytest.mark.process
def test_text_is_only_text(record: Any, tmp_path: Path, page_of: PageOf) -> None:
    html = page_of(write(tmp_path / "run", spoiled(record, EVIL)))
    check_safe(html)
    assert "<script>alert(1)</script>" in read(html).body_text, "shown as it is written, and run by nobody"


@pytest.mark.process
@pytest.mark.parametrize(
    "text", ["", " ", "x" * 100_000, "-- --help", "\n\n", "../../etc/passwd", "=cmd()", "{{ 7777*7777 }}"]
)
@pytest.mark.usefixtures("no_figures")
def test_odd_text(record: Any, tmp_path: Path, page_of: PageOf, text: str) -> None:
    html = page_of(write(tmp_path / "run", spoiled(record, text)))
    check_safe(html)
    without_records = re.sub(r"base64,[^\"]*", "", html)
    assert "60481729" not in html and len(without_records) < 10e6


@pytest.mark.process
@pytest.mark.usefixtures("no_figures")
def test_a_hostile_place(comparison: Path, tmp_path: Path, ropectl: Run) -> None:
    folder = tmp_path / "<img src=x onerror=alert(1)>\u202e"
    write(folder, json.loads((comparison / "comparison.json").read_text()))
    code, _, err = ropectl("report", str(folder), str(comparison), "-o", str(tmp_path / "page.html"))
    assert code == 0, err
    check_safe((tmp_path / "page.html").read_text())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("rows.1.perplexity.0.perplexity", 1e308),
        ("rows.1.perplexity.0.perplexity", None),
        ("rows.1.perplexity.0.ci_low", 1e300),
        ("rows.1.perplexity.0.num_tokens", 0),
        ("rows.1.perplexity", []),
        ("rows.1.tail", []),
        ("rows.1.passkey", []),
        ("rows.1.passkey.0.depths", []),
        ("rows.1.passkey.0.trials", 0),
        ("rows.1.short_delta", 1e300),
        ("rows.1.reach", {"computes": 2**62, "models": None, "uses": -3}),
        ("rows.1.errors", [EVIL]),
        ("rows.1.method", "no-such-method:a=b"),
        ("rows.1.method", "yarn:factor=-4"),
        ("pick", None),
        ("pick.method", "another"),
        ("lengths", [128]),
        ("target_length", 2**62),
        ("manifest", {}),
        ("manifest.config", {"depths": "x", "unknown": 1}),
        ("manifest.config.text", "--help"),
        ("manifest.documents", [EVIL] * 3),
        ("manifest.finetune", {"settings": [EVIL]}),
        ("verdict", [EVIL]),
        ("same_tokens", False),
    ],
)
@pytest.mark.usefixtures("no_figures")
def test_odd_values(record: Any, tmp_path: Path, page_of: PageOf, path: str, value: Any) -> None:
    check_safe(page_of(write(tmp_path / "run", with_values(record, path, value))))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("rows.1.perplexity.0.context_length", -5),
        ("rows.1.passkey.0.length", 0),
        ("lengths", [0, -1, 2**62]),
        ("manifest.config", None),
        ("manifest.command", "rm -rf"),
        ("manifest.existing", None),
        ("manifest.versions", [1, 2]),
    ],
)
def test_what_no_command_writes_is_refused(record: Any, tmp_path: Path, page_of: PageOf, path: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=re.escape(path)):
        page_of(write(tmp_path / "run", with_values(record, path, value)))


@pytest.mark.process
def test_figures_of_odd_values(record: Any, tmp_path: Path, page_of: PageOf) -> None:
    """What no axis can hold costs one figure at most."""
    for path, value in (("lengths", [2**62]), ("rows.1.short_delta", 1e300), ("rows.1.method", "no-such:a=b")):
        record = with_values(record, path, value)
    record = with_values(record, "rows.0.perplexity.0.perplexity", 1e308)
    check_safe(page_of(write(tmp_path / "run", record)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["not valid JSON"]),
        ('{"schema_version": 1, "rows": [', ["not valid JSON"]),
        ("[" * 5000 + "]" * 5000, ["nested more than 40 levels deep"]),
        ('{"a": ' * 100 + "1" + "}" * 100, ["nested more than 40 levels deep"]),
        ("[]", ["no record"]),
        ("null", ["no record"]),
        ('"text"', ["no record"]),
        ('{"name": "left-pad", "version": "1.0"}', ["not a record", "compare-methods"]),
        ('{"estimate": true}', ["dry run", "--dry-run"]),
        ('{"schema_version": 2, "rows": [], "lengths": []}', ["schema_version", "newer"]),
        ('{"schema_version": "x", "rows": [], "lengths": []}', ["schema_version"]),
        ('{"rows": [], "lengths": [1]}', ["compare-methods", "wrong"]),
        ('{"rows": 5, "lengths": 5}', ["wrong"]),
        ('{"points": [], "protocol": "prefix"}', ["eval-perplexity", "wrong"]),
        ('{"a": 1' + "0" * 400 + "}", ["number"]),
        ('{"a": 1' + "0" * 5000 + "}", ["holds a number of thousands of digits"]),
        ("\udcff\udcfe", ["not valid JSON"]),
    ],
)
def test_bad_files(tmp_path: Path, ropectl: Run, content: str, words: list[str]) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    code, out, err = ropectl("report", str(file))
    assert code == 2 and out == ""
    assert all(word in err for word in words), err
    assert "Traceback" not in err and err.count("Error") == 1 and "int_max_str" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_missing_fields_are_named(record: Any, tmp_path: Path, ropectl: Run) -> None:
    del record["rows"][1]["reach"]
    code, _, err = ropectl("report", str(write(tmp_path / "run", record)))
    assert code == 2 and "rows.1.reach" in err
    assert not (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("rows.1.perplexity.0.perplexity", -5.0, "more than 0"),
        ("rows.0.tail.0.perplexity", 0, "more than 0"),
        ("rows.1.passkey.0.accuracy", 3.0, "between 0 and 1"),
        ("rows.1.passkey.0.depths.0.accuracy", -0.5, "between 0 and 1"),
        ("rows.1.perplexity.0.bits_per_byte", -1.0, "not less than 0"),
    ],
)
def test_impossible_values_are_not_shown(
    record: Any, tmp_path: Path, ropectl: Run, path: str, value: float, words: str
) -> None:
    code, out, err = ropectl("report", str(write(tmp_path / "run", with_values(record, path, value))))
    assert code == 2 and not out and f"{path} is {value:g}" in err.replace("\n", " ") and words in err, err
    assert not (tmp_path / "run" / "report.html").exists()


def test_impossible_values_of_a_training_are_found() -> None:
    record = finetuning()
    read_record(record, "record")
    record["training"]["validation"]["perplexity"] = {"256": -2.0}
    with pytest.raises(ConfigError, match=r"training.validation.perplexity.256 is -2: a perplexity is more than 0"):
        read_record(record, "record")


def test_a_file_of_another_size(tmp_path: Path, ropectl: Run) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(100 * 2**20)
    code, _, err = ropectl("report", str(file))
    assert code == 2 and "100 MiB" in err


def test_bad_places(tmp_path: Path, ropectl: Run) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "comparison.json").symlink_to(tmp_path / "inside" / "comparison.json")
    (tmp_path / "folder" / "comparison.json").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("empty", "not a run folder: it is empty."),
        ("loop", "loop"),
        ("inside", "comparison.json is a link that leads to no file"),
        ("folder", "comparison.json is a folder"),
        ("none", "none does not exist"),
        ("pipe", "file"),
    ):
        code, _, err = ropectl("report", str(tmp_path / name))
        assert code == 2 and words in err and "Traceback" not in err, (name, err)
    assert not list(tmp_path.rglob("report.html"))


def test_text_that_does_something_is_replaced() -> None:
    assert shown("a\u202eb\x00\ud800\u200f") == "a?b???"
    assert shown("\u05d0\u4e2d\u00e9 caf\u00e9") == "\u05d0\u4e2d\u00e9 caf\u00e9", "other scripts are no harm"
    assert len(shown("x" * 10 * MAX_TEXT)) < MAX_TEXT + 50
