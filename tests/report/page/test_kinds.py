"""Pages of every other kind of record, made by the commands that write them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.report.tables.words import perplexity_text, sentences
from tests.report.page.reader import problems, read

pytestmark = pytest.mark.process

Run = Callable[..., tuple[int, str, str]]
PageOf = Callable[..., str]


@pytest.fixture
def measured(ropectl: Run, model_folder: Path, tmp_path: Path) -> Callable[..., tuple[Path, Any]]:
    """Runs a command and returns the file of its record, and the record."""

    def run(command: str, *arguments: str) -> tuple[Path, Any]:
        code, out, err = ropectl(command, *arguments, "--format", "json")
        assert code == 0, err
        file = tmp_path / f"{command}.json"
        file.write_text(out)
        return file, json.loads(out)

    return run


def repeats(html: str, ropectl: Run, key: str, record: Any) -> None:
    """The command on the page gives the record's numbers."""
    line = next(tag.text for tag in read(html).all("code") if tag.text.startswith("ropectl eval-"))
    code, out, err = ropectl(*shlex.split(line)[1:], "--format", "json")
    assert code == 0, err
    assert json.loads(out)[key] == record[key]


@pytest.mark.parametrize(
    "options", [["--preset", "yarn"], ["--protocol", "sliding", "--stride", "32"], ["--protocol", "tail"]]
)
def test_perplexity(measured: Any, model_folder: Path, page_of: PageOf, ropectl: Run, options: list[str]) -> None:
    file, record = measured(
        "eval-perplexity",
        str(model_folder),
        "-m",
        "yarn",
        "--factor",
        "4",
        "--length",
        "64,128",
        "--documents",
        "2",
        *options,
    )
    html = page_of(file)
    assert problems(html) == []
    text = read(html).body_text
    for point in (*record["points"], *record["unscaled"]):
        assert perplexity_text(point["perplexity"]) in text and f"{point['bits_per_byte']:.4f}" in text
    assert all(sentences([sentence]) in text for sentence in record["verdict"]) and record["protocol"] in text
    repeats(html, ropectl, "points", record)


def test_passkey(measured: Any, model_folder: Path, page_of: PageOf, ropectl: Run) -> None:
    file, record = measured(
        "eval-passkey", str(model_folder), "--length", "128,200", "--depths", "2", "--trials", "2", "--seed", "7"
    )
    html = page_of(file)
    assert problems(html) == []
    assert record["verdict"] in read(html).body_text
    repeats(html, ropectl, "cells", record)


def test_tasks(measured: Any, model_folder: Path, page_of: PageOf, ropectl: Run) -> None:
    arguments = ["--task", "passkey", "--length", "128", "--trials", "2", "--depths", "2"]
    file, record = measured("eval-tasks", str(model_folder), *arguments)
    html = page_of(file)
    assert problems(html) == [] and record["tasks"][0]["task"] in read(html).body_text
    repeats(html, ropectl, "tasks", record)


def test_inspections(measured: Any, page_of: PageOf) -> None:
    """Several methods in one file are several records."""
    file, records = measured("inspect", "builtin:tiny", "-m", "pi", "-m", "yarn", "--factor", "4")
    html = page_of(file)
    assert problems(html) == []
    page = read(html)
    assert [len(record["inv_freq"]) for record in records] == [16, 16]
    assert "2 runs side by side" in page.body_text and "pi:factor=4" in page.body_text
    assert f"{records[1]['inv_freq'][7]:,.6g}" in page.body_text


@pytest.mark.usefixtures("no_figures")
def test_a_training_before_and_after_its_end(ropectl: Run, model_folder: Path, tmp_path: Path, page_of: PageOf) -> None:
    out = tmp_path / "tuned"
    code, _, err = ropectl(
        "finetune", str(model_folder), "-m", "pi", "--factor", "2", "--steps", "3", "--batch-size", "1", "--text",
        "builtin:stdlib-train", "--eval-every", "2", "--eval-documents", "2", "--eval-trials", "1", "-o", str(out),
    )  # fmt: skip
    assert code == 0, err
    record = json.loads((out / "ropectl.json").read_text())
    pages = page_of(out), page_of(tmp_path / "tuned.run")
    for html in pages:
        assert problems(html) == []
        text = read(html).body_text
        assert f"{record['training']['last_loss']:.4f}" in text
        for value in record["training"]["validation"]["perplexity"].values():
            assert perplexity_text(value) in text
    (out / "ropectl.json").unlink()
    html = page_of(tmp_path / "tuned.run")
    assert problems(html) == [] and re.search(r"Unfinished: 3 of 3\s+steps", read(html).body_text)


def test_harness(tmp_path: Path, page_of: PageOf) -> None:
    """A result as lm-evaluation-harness writes it; a value that is not a number is one that it could not compute."""
    file = tmp_path / "harness.json"
    results = {"arc_easy": {"acc,none": 0.5125, "acc_stderr,none": 0.01, "alias": "arc_easy"}, "x": {"ppl,none": None}}
    file.write_text(json.dumps({"model": "m", "method": "pi:factor=4", "results": results, "configs": {}}))
    html = page_of(file)
    assert problems(html) == [] and "0.5125" in read(html).body_text
