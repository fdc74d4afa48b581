"""Ctrl-C and kill -9 in the middle of a comparison: whole records only, and the same command finishes it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.processes import Running

pytestmark = pytest.mark.process

#: The command with a pause before every measured cell of passkeys, so that it is met at work.
PACED = """
import time
from ropectl.cli.app import main
from ropectl.compare import factory
answer = factory.answer_passkeys
def paced(*arguments, **options):
    time.sleep(0.3)
    return answer(*arguments, **options)
factory.answer_passkeys = paced
main()
"""
ARGUMENTS = ["-m", "pi", "-m", "yarn", "--factor", "2", "--documents", "2", "--trials", "1", "--depths", "2"]


def start(model: Path, folder: Path, how: tuple[str, str] = ("-m", "ropectl")) -> Running:
    return Running([*how, "compare-methods", model, *ARGUMENTS, "-o", folder, "--format", "json"])


def without_times(record: Any) -> Any:
    if isinstance(record, dict):
        return {key: without_times(value) for key, value in record.items() if key not in ("seconds", "command")}
    return [without_times(value) for value in record] if isinstance(record, list) else record


@pytest.fixture(scope="module")
def uninterrupted(saved_tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    process = start(saved_tiny, tmp_path_factory.mktemp("whole") / "run")
    return without_times(json.loads(process.communicate()[0]))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_interrupted_and_continued(
    saved_tiny: Path, tmp_path: Path, uninterrupted: Any, number: signal.Signals, code: int
) -> None:
    cells = tmp_path / "run" / "cells"
    process = start(saved_tiny, tmp_path / "run", ("-c", PACED))
    deadline = time.monotonic() + 120
    while len(list(cells.glob("*.json"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == code and out == b""
    if number == signal.SIGINT:
        assert b"Interrupted" in err and b"Traceback" not in err
    records = sorted(cells.glob("*.json"))
    assert all("result" in json.loads(path.read_text()) for path in records)
    before = {path: path.read_bytes() for path in records}

    again = start(saved_tiny, tmp_path / "run")
    assert without_times(json.loads(again.communicate()[0])) == uninterrupted
    assert all(path.read_bytes() == content for path, content in before.items())
