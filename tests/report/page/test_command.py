"""``ropectl report``: where pages go, and what they never replace."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.evaluate.config import CompareConfig
from ropectl.report.writers.html import is_page

Run = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture
def run_folder(comparison: Path, tmp_path: Path) -> Path:
    """A copy of the comparison's folder."""
    shutil.copytree(comparison, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.process
def test_it_stands_in_the_run_folder(run_folder: Path, ropectl: Run) -> None:
    code, out, err = ropectl("report", str(run_folder))
    assert code == 0 and out.startswith(str(run_folder / "report.html")) and "KiB" in out, err
    assert is_page(run_folder / "report.html")
    assert not list(run_folder.glob(".*.tmp"))
    assert ropectl("report", str(run_folder))[0] == 0, "a page of ours may be made again"


def test_it_stands_beside_a_record(run_folder: Path, ropectl: Run) -> None:
    record = run_folder.parent / "copy.json"
    shutil.copy(run_folder / "comparison.json", record)
    code, out, _ = ropectl("report", str(record), "--format", "json")
    told = json.loads(out)
    assert code == 0 and told["output"] == str(record.parent / "report.html")
    assert told["bytes"] == (record.parent / "report.html").stat().st_size
    assert [(run["kind"], run["unfinished"]) for run in told["runs"]] == [("comparison", None)]


@pytest.mark.process
def test_several_stand_beside_the_first(run_folder: Path, comparison: Path, ropectl: Run) -> None:
    code, out, _ = ropectl("report", str(run_folder), str(comparison))
    assert code == 0 and out.startswith(str(run_folder.parent / "report.html"))
    assert not (run_folder / "report.html").exists(), "which is the place of its own page"


def test_it_replaces_nothing_of_others(run_folder: Path, ropectl: Run) -> None:
    other = run_folder.parent / "other.html"
    other.write_text("<p>mine</p>")
    code, _, err = ropectl("report", str(run_folder), "-o", str(other))
    assert code == 2 and "--overwrite" in err and other.read_text() == "<p>mine</p>"
    assert ropectl("report", str(run_folder), "-o", str(other), "--overwrite")[0] == 0 and is_page(other)
    source = run_folder / "comparison.json"
    before = source.read_bytes()
    code, _, err = ropectl("report", str(run_folder), "-o", str(source), "--overwrite")
    assert code == 2 and "made from" in err and source.read_bytes() == before
    code, _, err = ropectl("report", str(run_folder), "-o", str(run_folder))
    assert code == 2 and "is a folder" in err


@pytest.mark.parametrize("name", ["page.pdf", "page.md", "page"])
def test_other_kinds_of_files_are_refused(run_folder: Path, ropectl: Run, name: str) -> None:
    out = run_folder.parent / name
    code, _, err = ropectl("report", str(run_folder), "-o", str(out), "--overwrite")
    assert code == 2 and "the page is HTML" in err and "page.html" in err and not out.exists()
    assert ropectl("report", str(run_folder), "-o", str(out.with_suffix(".HTM")))[0] == 0


def test_a_place_that_cannot_be_written(run_folder: Path, ropectl: Run) -> None:
    code, _, err = ropectl("report", str(run_folder), "-o", "/dev/null/page.html")
    assert code == 2 and "/dev/null" in err and "-o FILE" in err
    code, _, err = ropectl("report", str(run_folder), "--figures", str(run_folder / "comparison.json"))
    assert code == 2 and "--figures" in err


@pytest.mark.process
def test_figures_are_written_too(run_folder: Path, ropectl: Run) -> None:
    code, out, err = ropectl("report", str(run_folder), "--figures", str(run_folder / "figures"), "--format", "json")
    assert code == 0, err
    written = {Path(name) for name in json.loads(out)["figures"]}
    assert written == set((run_folder / "figures").iterdir()) and {path.suffix for path in written} == {
        ".svg",
        ".pdf",
        ".png",
    }
    code, out, err = ropectl("report", str(run_folder), "--figures", str(run_folder / "more"), "--format", "csv")
    assert code == 0 and out.startswith("model,method") and "figure files" in err and "figure" not in out


TEXTS = {"latex": "% Tables made by ropectl.", "markdown": "Model ", "csv": "model,method,"}


@pytest.mark.parametrize("form", TEXTS)
def test_the_whole_as_a_text(run_folder: Path, ropectl: Run, form: str) -> None:
    """Printed, and nothing written; the same in a file, which is known again as ours, and no other is replaced."""
    before = sorted(run_folder.parent.rglob("*"))
    code, out, err = ropectl("report", str(run_folder), "--format", form)
    assert code == 0 and out.startswith(TEXTS[form]) and not err and sorted(run_folder.parent.rglob("*")) == before
    file = run_folder.parent / {"latex": "a.tex", "markdown": "a.md", "csv": "a.csv"}[form]
    for _ in range(2):
        code, told, err = ropectl("report", str(run_folder), "--format", form, "-o", str(file))
        assert code == 0 and told.startswith(str(file)) and file.read_text().endswith(out), err
    file.write_text("mine")
    code, _, err = ropectl("report", str(run_folder), "--format", form, "-o", str(file))
    assert code == 2 and "--overwrite" in err and file.read_text() == "mine"
    assert ropectl("report", str(run_folder), "--format", form, "-o", str(file), "--overwrite")[0] == 0
    assert file.read_text().endswith(out) and not list(run_folder.parent.glob(".*.tmp"))
    code, _, err = ropectl(
        "report", str(run_folder), "--format", form, "-o", str(run_folder / "comparison.json"), "--overwrite"
    )
    assert code == 2 and "made from" in err


@pytest.mark.process
def test_it_is_what_the_command_prints(comparison: Path, config: CompareConfig, tmp_path: Path, ropectl: Run) -> None:
    """From the folder, without the command: the same text as with it, which measures nothing."""
    settings = [
        "-m",
        "yarn:beta_fast=16",
        "-m",
        "dynamic-ntk",
        "--factor",
        "4",
        "--length",
        "128,200",
        "--documents",
        "2",
    ]
    settings += [
        "--trials",
        "2",
        "--depths",
        "2",
        "--seed",
        "3",
        "-o",
        str(shutil.copytree(comparison, tmp_path / "run")),
    ]
    for form in TEXTS:
        code, out, err = ropectl("compare-methods", config.model, *settings, "--format", form)
        assert code == 0 and "cells are already in" in err, err
        assert ropectl("report", str(tmp_path / "run"), "--format", form)[1] == out


def test_html_is_the_page(run_folder: Path, ropectl: Run) -> None:
    code, out, _ = ropectl("report", str(run_folder), "--format", "html")
    assert code == 0 and out.startswith(str(run_folder / "report.html")) and is_page(run_folder / "report.html")


@pytest.mark.parametrize(
    ("form", "name", "words"),
    [
        ("latex", "a.html", "--format html"),
        ("latex", "a.md", "the name of latex text ends in .tex, not in .md"),
        ("csv", "a.tex", "--format latex"),
        ("html", "a.tex", "--format latex"),
    ],
)
def test_a_name_says_the_format(run_folder: Path, ropectl: Run, form: str, name: str, words: str) -> None:
    out = run_folder.parent / name
    code, _, err = ropectl("report", str(run_folder), "--format", form, "-o", str(out))
    assert code == 2 and words in " ".join(err.split()) and not out.exists()


def test_what_has_no_values_is_refused(tmp_path: Path, ropectl: Run, run_folder: Path) -> None:
    """Before anything is written, and named among several."""
    file = tmp_path / "inspection.json"
    file.write_text(ropectl("inspect", "builtin:tiny", "-m", "pi", "--factor", "2", "--format", "json")[1])
    code, out, err = ropectl("report", str(run_folder), str(file), "--format", "csv", "-o", str(tmp_path / "a.csv"))
    assert code == 2 and not out and "inspection.json has none" in " ".join(err.split()) and "latex" in err
    assert not (tmp_path / "a.csv").exists()
    assert ropectl("report", str(run_folder), str(file), "--format", "latex")[0] == 0


def test_an_unfinished_comparison_says_so_beside_its_tables(run_folder: Path, ropectl: Run) -> None:
    (run_folder / "comparison.json").unlink()
    min((run_folder / "cells").iterdir()).unlink()
    code, out, err = ropectl("report", str(run_folder), "--format", "markdown")
    assert code == 0 and "is unfinished: 1 of" in err and "Unfinished: 1 of" in out


def test_without_a_run_it_says_what_is_wanted(ropectl: Run) -> None:
    code, _, err = ropectl("report")
    assert code == 2 and "RUN" in err
    code, out, _ = ropectl("report", "--help")
    assert code == 0 and re.search(r"report \[OPTIONS\] \{?RUN\}?\.\.\.\s", out), "three dots, once"
