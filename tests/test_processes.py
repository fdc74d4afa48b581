"""A process that starts warm ends, prints and dies as a fresh one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import Running, run_python

pytestmark = pytest.mark.process


def test_processes_start_warm() -> None:
    """Where ``tests.warm_imports`` fails, all of them would start cold and nobody would be told."""
    assert run_python(["-c", "import sys; sys.exit('tests.warm_imports' not in sys.modules)"]).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "ropectl", "methods", "yarn"],
        ["-m", "ropectl", "inspect", "no-such-folder"],
        ["-c", "import sys, os; print(sys.argv, os.getcwd(), os.environ['OWN']); sys.exit('words')", "--flag"],
        ["-c", "import os, sys; print('x', end='', flush=True); os.kill(os.getpid(), 15)"],
    ],
    ids=str,
)
def test_ends_and_prints_as_a_fresh_one(arguments: list[str], tmp_path: Path) -> None:
    own = {"OWN": "value", "PYTHONPATH": str(Path(__file__).parents[1])}
    warm = run_python(arguments, env=own, cwd=tmp_path)
    fresh = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **own}, cwd=tmp_path, capture_output=True, text=True
    )
    assert (warm.returncode, warm.stdout, warm.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)


def test_signals_reach_it_and_late_ones_are_killed() -> None:
    process = Running(["-c", "import time; time.sleep(600)"])
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait() == process.returncode == -signal.SIGKILL
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        Running(["-c", "import time; time.sleep(600)"]).communicate(timeout=0.1)
    assert time.monotonic() - start < 60
