"""``ropectl report``: where pages go, and what they never replace."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

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
    assert written == set((run_folder / "figures").iterdir()) and {path.suffix for path in written} == {".svg", ".png"}


def test_without_a_run_it_says_what_is_wanted(ropectl: Run) -> None:
    code, _, err = ropectl("report")
    assert code == 2 and "RUN" in err
    code, out, _ = ropectl("report", "--help")
    assert code == 0 and re.search(r"report \[OPTIONS\] \{?RUN\}?\.\.\.\s", out), "three dots, once"
