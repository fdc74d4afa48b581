"""Memory runs out for real: a message with what to do, and the last state as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ropectl.memory import is_out_of_memory
from ropectl.train.run_state.run_folder import TrainingFolder
from tests.processes import run_python

#: Trains with room to spare, then goes on with as little address space as stands after the imports.
LIMITED = """
import resource, sys
import torch
from ropectl.cli.app import main
import ropectl.train.loop as loop
torch.set_num_threads(1)
step, limit = loop.Loop._step, int(sys.argv.pop(1))
def limited(self, batches, total):
    if self.progress.step == 1:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limit, resource.RLIM_INFINITY))
        # More than the step before: what that one gave back is not given back to the system.
        batches = [{name: tensor.repeat(16, 1) for name, tensor in batch.items()} for batch in batches]
    return step(self, batches, total)
loop.Loop._step = limited
main()
"""


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
def test_running_out_of_memory_ends_with_levers_and_a_whole_state(tmp_path: Path) -> None:
    options = ["finetune", "-m", "yarn", "--factor", "4", "--seq-len", "2048", "--batch-size", "1", "--steps", "3"]
    options += ["--save-every", "1", "--device", "cpu", "-o", "tuned"]
    run = run_python(["-c", LIMITED, str(32 * 2**20), *options], cwd=tmp_path)
    assert run.returncode == 1, run.stderr
    for text in (
        "Memory ran out at 2048 tokens a sequence and micro-batch 1. The state after step 1 is complete.",
        "--activation-checkpointing on", "--loss-chunk", "--seq-len", "--dry-run",
    ):  # fmt: skip
        assert text in run.stderr
    assert "Traceback" not in run.stderr and not (tmp_path / "tuned").exists()
    assert [state.progress["step"] for state in TrainingFolder(tmp_path / "tuned").states()][-1] == 1


def test_what_torch_raises_is_recognised() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(1 << 55, dtype=torch.uint8)
    assert is_out_of_memory(refused.value)
    assert is_out_of_memory(MemoryError()) and is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert not is_out_of_memory(RuntimeError("shape mismatch")) and not is_out_of_memory(ValueError("out of memory"))
