"""An interrupted run ends with the very weights of one that was not: bit by bit, on the CPU."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.reporter import Reporter
from ropectl.train.finetuning import finetune
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.settings import FinetuneSettings
from tests.processes import Running
from tests.train.runs import arguments, losses, small_settings, weights, write_text

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

#: Dropout draws random numbers in every step; the short text is seen several times.
RUNS: dict[str, dict[str, Any]] = {
    "full": {},
    "dropout": {"strategy": "lora", "lora_dropout": 0.2, "lora_targets": "all"},
    "epochs": {"batch_size": 8},
}
STEPS = 12

#: The command with a pause after every step, so that it is met where it is looked for.
PACED = """
import time
from ropectl.cli.app import main
from ropectl.train.loop import Loop
step = Loop._step
def paced(self, *arguments):
    result = step(self, *arguments)
    time.sleep(0.1)
    return result
Loop._step = paced
main()
"""


def options_of(kind: str, folder: Path) -> dict[str, Any]:
    options = {"steps": STEPS, "save_every": 3, **RUNS[kind]}
    return {**options, "text": str(write_text(folder, ("bisect.py",)))} if kind == "epochs" else options


def start(settings: FinetuneSettings) -> Running:
    return Running(["-c", PACED, *arguments(settings)])


def wait_for_step(out: Path, step: int, process: Running) -> None:
    deadline = time.monotonic() + 120
    while len(losses(out) if out.with_name("out.run").joinpath("metrics.jsonl").exists() else []) < step:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def same(left: Path, right: Path) -> bool:
    one, other = weights(left), weights(right)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", RUNS)
def test_killed_at_a_random_step(checkpoint: Callable[..., Path], tmp_path: Path, kind: str) -> None:
    source = checkpoint()
    whole, out = tmp_path / "whole", tmp_path / "out"
    options = options_of(kind, tmp_path)
    record = finetune(small_settings(source, whole, **options)).record
    assert record is not None and (record["training"]["epochs"] > 3) == (kind == "epochs")
    settings = small_settings(source, out, **options)
    process = start(settings)
    wait_for_step(out, random.randint(2, STEPS - 3), process)
    process.kill()
    process.communicate()
    if not (out / "config.json").exists():
        assert 0 < len(losses(out)) < STEPS
    finetune(settings)
    assert same(whole, out)
    assert losses(whole) == losses(out)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_finish_the_step_and_save(
    checkpoint: Callable[..., Path], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    source = checkpoint()
    whole, out = tmp_path / "whole", tmp_path / "out"
    options: dict[str, Any] = {"steps": 20, "save_every": 1000}
    settings = small_settings(source, out, **options)
    process = start(settings)
    wait_for_step(out, 3, process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code and stdout == b"", stderr
    assert b"the same command continues" in stderr and b"Traceback" not in stderr
    done = len(losses(out))
    newest = max((tmp_path / "out.run").glob("state-*"))
    assert newest.name == f"state-{done:08d}" and not out.exists()
    finetune(settings)
    finetune(small_settings(source, whole, **options))
    assert same(whole, out) and losses(whole) == losses(out)


def test_a_cut_state_is_passed_over(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """A full disk can leave a file short: the state before it is used."""
    source = checkpoint()
    whole, out = tmp_path / "whole", tmp_path / "out"
    finetune(small_settings(source, whole, keep=5))
    settings = small_settings(source, out, keep=5)
    finetune(settings)
    import shutil

    shutil.rmtree(out)
    newest = tmp_path / "out.run" / "state-00000006"
    optimizer = newest / "optimizer.bin"
    optimizer.write_bytes(optimizer.read_bytes()[:-100])
    (tmp_path / "out.run" / ".state-00000008.tmp").mkdir()
    reporter = Reporter()
    finetune(settings, reporter)
    assert any("Continuing after step 4" in note for note in reporter.notes)
    assert same(whole, out)
    assert not list((tmp_path / "out.run").glob(".state-*"))


def test_two_runs_into_one_folder(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source = checkpoint()
    settings = small_settings(source, tmp_path / "out", steps=100_000, save_every=1000)
    first = start(settings)
    wait_for_step(tmp_path / "out", 1, first)
    second = start(settings)
    _, stderr = second.communicate(timeout=60)
    assert second.returncode == 2 and b"Another run is writing" in stderr
    first.kill()
    first.communicate()


class Killed(Exception):
    """Stands for a kill."""


def test_killed_between_a_better_validation_and_the_next_state(
    checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best weights are then of a step that the newest state knows nothing of."""
    source = checkpoint()
    whole, out = tmp_path / "whole", tmp_path / "out"
    options: dict[str, Any] = {
        "steps": 6, "save_every": 3, "eval_every": 1, "eval_text": str(write_text(tmp_path, ("heapq.py",))),
        "eval_lengths": (64,), "eval_trials": 0, "learning_rate": 3e-4,
    }  # fmt: skip
    finetune(small_settings(source, whole, **options))
    settings = small_settings(source, out, **options)
    write = TrainingFolder.write_best

    def killed_at_five(self: TrainingFolder, step: int, weights: dict[str, Any]) -> None:
        write(self, step, weights)
        if step == 5:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(TrainingFolder, "write_best", killed_at_five)
        finetune(settings)
    folder = TrainingFolder(out)
    assert folder.best_weights(3).is_file() and folder.best_weights(5).is_file()
    finetune(settings)
    assert same(whole, out)


def test_best_weights_that_are_lost_are_not_spoken_of(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    source, out = checkpoint(), tmp_path / "out"
    options: dict[str, Any] = {
        "steps": 4, "save_every": 2, "eval_every": 2, "eval_text": str(write_text(tmp_path, ("heapq.py",))),
        "eval_lengths": (64,), "eval_trials": 0,
    }  # fmt: skip
    settings = small_settings(source, out, **options)
    finetune(settings)
    import shutil

    for path in (out, TrainingFolder(out).best):
        shutil.rmtree(path)
    reporter = Reporter()
    record = finetune(settings, reporter).record
    assert any("the best so far, are missing" in note for note in reporter.notes)
    assert record is not None and record["training"]["step"] == 4
