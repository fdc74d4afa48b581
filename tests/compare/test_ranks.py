"""A comparison shared by processes equals that of one, and loses nothing to a kill."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.compare.ranks import Ranks
from tests.distributed import run_ranks, run_ranks_that_may_fail
from tests.processes import Running, run_python

from .test_compare import without_times


def arguments(checkpoint: Path, out: Path) -> list[str]:
    sizes = ["--factor", "4", "--length", "128,256", "--documents", "2", "--trials", "2", "--depths", "3"]
    return [
        "-m",
        "ropectl",
        "compare-methods",
        str(checkpoint),
        "-m",
        "pi",
        "-m",
        "dynamic-ntk",
        *sizes,
        "-o",
        str(out),
    ]


def records(run: Path) -> dict[str, Any]:
    return {path.name: without_times(json.loads(path.read_text())) for path in sorted((run / "cells").glob("*.json"))}


def test_work_is_shared_evenly_and_wholly() -> None:
    rng = random.Random(0)
    costs = [rng.expovariate(1) for _ in range(40)]
    shares = [Ranks(rank, 3).share(list(enumerate(costs)), lambda entry: entry[1]) for rank in range(3)]
    assert sorted(entry for share in shares for entry in share) == list(enumerate(costs))
    loads = [sum(cost for _, cost in share) for share in shares]
    assert max(loads) - min(loads) <= max(costs)
    assert all(share == sorted(share, key=lambda entry: -entry[1]) for share in shares)
    assert Ranks().share([3, 1, 2], float) == [3, 1, 2], "one process keeps the order that a person expects"


@pytest.mark.process
def test_two_ranks_equal_one(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """The same records; one speaks, and what is there is not measured again."""
    folder, alone, shared = checkpoint(), tmp_path / "alone", tmp_path / "shared"
    run_ranks(arguments(folder, alone), 1)
    outputs = run_ranks(arguments(folder, shared), 2)
    assert records(alone) == records(shared) and len(records(alone)) > 9
    one, two = (json.loads((run / "comparison.json").read_text()) for run in (alone, shared))
    assert without_times(one["rows"]) == without_times(two["rows"]) and one["pick"] == two["pick"]
    assert "Perplexity by context" in outputs[0] and "Perplexity" not in outputs[1] and "note:" not in outputs[1]
    before = {path: path.stat().st_mtime_ns for path in (shared / "cells").iterdir()}
    run_ranks(arguments(folder, shared), 2)
    assert {path: path.stat().st_mtime_ns for path in (shared / "cells").iterdir()} == before


#: Runs ropectl in the way of ``python -m``, but rank 1 is gone, as if killed, when its second cell begins.
LOST_RANK = """
import os, runpy, signal, sys
from ropectl.compare.cells import ComparisonCell
measured, begun = ComparisonCell.outcome, []

def outcome(cell, *arguments):
    begun.append(cell)
    if os.environ["RANK"] == "1" and len(begun) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return measured(cell, *arguments)

ComparisonCell.outcome = outcome
runpy.run_module("ropectl", run_name="__main__")
"""


@pytest.mark.process
def test_a_lost_rank_loses_its_cell_only(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """The other one finishes its cells and says what happened; the same command measures the rest alone."""
    folder, alone, shared = checkpoint(), tmp_path / "alone", tmp_path / "shared"
    run_ranks(arguments(folder, alone), 1)
    whole = records(alone)
    script = tmp_path / "lost_rank.py"
    script.write_text(LOST_RANK)
    codes, outputs = run_ranks_that_may_fail([script, *arguments(folder, shared)[2:]], 2, patience=120)
    assert codes == [1, -signal.SIGKILL], outputs
    assert "another one ended before its own were done" in outputs[0] and "type the same command again" in outputs[0]
    kept = records(shared)
    own = -(-len(whole) // 2)  # costs differ, so a share may have one cell more or less than half
    assert own - 1 <= len(kept) - 1 <= own + 1, "all of rank 0 and one of rank 1"
    assert kept == {name: whole[name] for name in kept}
    before = {path: path.stat().st_mtime_ns for path in (shared / "cells").iterdir()}
    run_ranks(arguments(folder, shared), 1)
    assert records(shared) == whole
    assert before == {path: path.stat().st_mtime_ns for path in before}, "what was kept is not measured again"


def killed_and_finished(folder: Path, place: Path, num_kills: int, rng: random.Random) -> None:
    """Kills a comparison over and over, finishes it, and checks its records against an undisturbed one's."""
    whole, killed = place / "whole", place / "killed"
    started = time.monotonic()
    run_python(arguments(folder, whole)).check_returncode()
    took, finished = time.monotonic() - started, 0
    for _ in range(num_kills):
        process = Running(arguments(folder, killed))
        time.sleep(took * rng.uniform(0.3, 1.0))
        process.kill()
        names = list((killed / "cells").glob("*.json")) if killed.exists() else []
        assert all("result" in json.loads(path.read_text()) for path in names), "a record is whole or not there"
        assert len(names) >= finished, "a finished record stays"
        finished = len(names)
        if finished == len(records(whole)):
            shutil.rmtree(killed / "cells")  # all is there: begin again, so that the next kill meets work
            finished = 0
    run_python(arguments(folder, killed)).check_returncode()
    assert records(killed) == records(whole)


@pytest.mark.process
def test_a_kill_at_any_moment_loses_no_finished_record(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """Killed without warning, then finished: the records of an undisturbed run, times aside; slow/test_kills.py: 30 kills."""
    killed_and_finished(checkpoint(), tmp_path, 3, random.Random(5))
