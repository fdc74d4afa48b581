"""What a pipe or a file gets: lines that end where their writing does, at any width, and a reader who may leave early."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.cli import output

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("columns", ["0", "000", "7", "20"])
def test_a_width_that_is_none_does_not_silence_anything(
    ropectl: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    """0 stands for an unknown width, as of a terminal on a serial line; less than a table needs is made 20."""
    monkeypatch.setenv("COLUMNS", columns)
    code, out, err = ropectl("methods")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) > 60 if not int(columns) else out
    code, out, err = ropectl("methods", "yrn")
    assert code == 2 and "yarn" in err
    output.note("read me")
    assert "read me" in " ".join(capsys.readouterr().err.split())


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        ("methods",),
        ("methods", "yarn"),
        ("methods", "--choose", "--target-length", "2k"),
        ("inspect", "-m", "yarn", "--factor", "4"),
        ("patch", "-m", "yarn", "--factor", "4", "--dry-run", "-o", "out"),
    ],
    ids=" ".join,
)
def test_no_line_ends_in_spaces(ropectl: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = ropectl(*arguments)
    assert code == 0, err
    assert [line for line in out.splitlines() if line != line.rstrip()] == []


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        ("methods",),
        ("methods", "--format", "json"),
        ("inspect", "-m", "yarn", "--factor", "4"),
        ("eval-tasks", "--list"),
    ],
    ids=" ".join,
)
def test_a_reader_that_leaves_is_no_failure(arguments: tuple[str, ...]) -> None:
    """141 is what a shell says of a program that SIGPIPE ended; nothing is said on stderr."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        command = [sys.executable, "-m", "ropectl", *arguments]
        done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")
