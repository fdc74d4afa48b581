"""The launcher of the distributed tests finds what goes wrong on any rank, and leaves nothing running."""

from __future__ import annotations

import time

import pytest

from tests.distributed import run_ranks

pytestmark = pytest.mark.process


def test_every_rank_knows_its_place() -> None:
    code = "import os; print(*(os.environ[name] for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'EXTRA')))"
    assert run_ranks(["-c", code], 3, env={"EXTRA": "x"}) == [f"{rank} {rank} 3 x\n" for rank in range(3)]


def test_a_failure_of_one_rank_ends_all() -> None:
    code = "import os, sys, time; os.environ['RANK'] == '0' and time.sleep(600); print('broken'); sys.exit(3)"
    start = time.monotonic()
    with pytest.raises(AssertionError, match=r"rank 0, exit code -9\n(.|\n)*rank 1, exit code 3\nbroken"):
        run_ranks(["-c", code], 2)
    assert time.monotonic() - start < 60


def test_a_rank_that_hangs_is_killed() -> None:
    with pytest.raises(AssertionError, match="rank 1, exit code -9"):
        run_ranks(["-c", "import time; time.sleep(600)"], 2, timeout=1)
