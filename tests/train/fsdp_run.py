"""The sharded runs, rank by rank: ``finetune`` as it is, under the FSDP2 that accelerate gives to GPUs.

On a CPU accelerate leaves FSDP out. It decides by the kind of device alone, so here it is told the kind; all that
follows is its own code, and the environment is what its launcher makes of ``configs/accelerate``.

    python -m tests.train.fsdp_run RUNS.json

Every rank of every run is a process of its own, so that its end is a real one; they are forked, so that libraries
are imported once (``tests.warm_imports``).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate.state import DistributedType, PartialState

from ropectl.errors import ConfigError
from ropectl.reporter import Reporter
from ropectl.train.engine.accelerator import is_sharded
from ropectl.train.engine.engine import Engine
from ropectl.train.finetuning import finetune
from ropectl.train.loop import Loop
from ropectl.train.settings import FinetuneSettings


class StoppingReporter(Reporter):
    """Asks one rank to stop, as a signal would; the others have to hear of it."""

    def __init__(self, stop_after: int | None) -> None:
        super().__init__()
        self._stop_after = stop_after

    def step(self, metrics: Mapping[str, Any]) -> None:
        """Stops after a step."""
        if metrics["step"] == self._stop_after and PartialState().process_index == 1:
            os.kill(os.getpid(), signal.SIGTERM)


def look_inside() -> list[torch.Tensor]:
    """Has the run checked while it is sharded: what is wrapped, its rotary table, its optimizer; returns the table."""
    checked: list[torch.Tensor] = []
    loop, prepare = Loop.run, Engine.prepare.__func__

    def checked_prepare(cls: Any, accelerator: Any, *rest: Any) -> Engine:
        engine: Engine = prepare(cls, accelerator, *rest)
        assert accelerator.is_fsdp2 and is_sharded(accelerator)
        units = [type(part).__name__ for part in engine.loss.modules() if type(part).__name__.startswith("FSDP")]
        assert sorted(units) == ["FSDPCausalLoss", "FSDPLlamaDecoderLayer", "FSDPLlamaDecoderLayer"], units
        assert all(type(parameter).__name__ == "DTensor" for parameter in engine.loss.parameters())
        checked.append(engine.model.model.rotary_emb.inv_freq.clone())  # what the run then compares with its method
        return engine

    def checked_loop(self: Loop, *arguments: Any) -> int:
        result = loop(self, *arguments)
        table = self.engine.model.model.rotary_emb.inv_freq
        assert table.dtype == torch.float32 and torch.equal(table, checked[0])
        states = [state["step"] for state in self.engine.optimizer.state.values()]
        assert states and {float(state) for state in states} == {float(self.progress.step)}
        checked.append(table)
        return result

    Engine.prepare = classmethod(checked_prepare)
    Loop.run = checked_loop
    return checked


def forget(out: Path, step: int) -> None:
    """Removes the states after a step."""
    state = PartialState()
    if state.is_main_process:
        for path in out.with_name(f"{out.name}.run").glob("state-*"):
            if int(path.name.removeprefix("state-")) > step:
                shutil.rmtree(path)
    state.wait_for_everyone()


def refused(settings: FinetuneSettings, message: str) -> None:
    """A run that every rank has to refuse, without waiting for another."""
    try:
        finetune(settings)
    except ConfigError as error:
        assert message in str(error), error
    else:
        raise AssertionError("not refused")
    torch.distributed.destroy_process_group()


def one(case: Mapping[str, Any], rank: int) -> None:
    """One run on this rank."""
    warnings.simplefilter("ignore")
    place = dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank)) | dict.fromkeys(
        ("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(case["num_ranks"])
    )
    os.environ.update(place, MASTER_PORT=str(case["port"]), **case.get("env", {}))
    torch.set_num_threads(1)
    PartialState(cpu=True).distributed_type = DistributedType.MULTI_GPU
    checked = look_inside()
    reporter = StoppingReporter(case.get("stop_after"))
    is_main = PartialState().is_main_process
    if "from_step" in case:
        forget(Path(case["settings"]["out"]), case["from_step"])
    settings = FinetuneSettings(**case["settings"])
    if "refused" in case:
        refused(settings, case["refused"])
        return
    result = finetune(settings, reporter)
    stopped = case.get("stop_after") is not None
    assert (result.signal, result.step) == ((signal.SIGTERM, case["stop_after"]) if stopped else (0, case["steps"]))
    assert (result.record is not None) == (is_main and not stopped)
    assert len(checked) == 2
    assert not torch.distributed.is_initialized()
    assert not is_main or not [note for note in reporter.notes if "first loss is" in note], reporter.notes


def end_well(ranks: dict[int, int], name: str) -> bool:
    """Waits for the processes of a run, whose ranks these are; when one fails, the others are not waited for."""
    while ranks:
        process, status = os.wait()
        rank, code = ranks.pop(process), os.waitstatus_to_exitcode(status)
        if code:
            print(f"{name}: exit code {code} of rank {rank}")
            for other in ranks:
                os.kill(other, signal.SIGKILL)
            return False
    return True


def main() -> int:
    """Returns 0 if every run ended well on every rank."""
    cases = json.loads(Path(sys.argv[1]).read_text())
    for case in cases:
        ranks = {}
        for rank in range(case["num_ranks"]):
            child = os.fork()
            if child == 0:
                one(case, rank)
                return 0
            ranks[child] = rank
        if not end_well(ranks, case["name"]):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
