"""Whole runs under FSDP2, on two and four ranks: the same training as in one process, and whole results."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.train.export import validate_files
from ropectl.train.finetuning import finetune
from tests.conftest import make_model
from tests.distributed import run_ranks
from tests.train.runs import losses, small_settings, weights, write_text
from tests.train.test_accelerate_configs import environment, launch_lines, parse
from tests.train.test_ranks import LOSS, assert_same

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

CONFIG = Path("configs/accelerate/fsdp2.yaml")
#: The last validation is before the last step: the best weights are not the last ones.
STEPS, EVAL_EVERY = 5, 2
LORA = {"strategy": "lora", "train_norms": True, "train_embeddings": True}
UNWATCHED = {"eval_every": None, "eval_text": None, "eval_lengths": ()}
DROPOUT = {"strategy": "lora", "lora_targets": "all", "lora_dropout": 0.2, **UNWATCHED}
#: Two groups that share each sequence; its length is no multiple of their size.
SHARED = {"cp_size": 2, "seq_len": 66, "steps": 3, "eval_every": 3}
#: Its LoRA matrices have fewer rows than there are ranks: some ranks hold nothing of them.
FLAT = {"strategy": "lora", "lora_rank": 2, **UNWATCHED}

#: Losses in bfloat16 (relative to those in float32).
BFLOAT16 = 1e-2


class Runs:
    """Runs that are launched together, and the same in one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held_out = write_text(folder, ("heapq.py",))
        self._cases: list[dict[str, Any]] = []
        for tied in (True, False):
            source = self.source(tied)
            make_model(tie_word_embeddings=tied).save_pretrained(source)
            AutoTokenizer.from_pretrained(TINY_MODEL_DIR).save_pretrained(source)

    def source(self, tied: bool) -> Path:
        """The model that is trained."""
        return self.folder / ("tied" if tied else "untied")

    def settings(self, out: str, tied: bool, **changes: Any) -> Any:
        """What every run has, and its own."""
        options = {
            "steps": STEPS, "eval_every": EVAL_EVERY, "eval_lengths": (64, 128), "eval_trials": 1, "save_every": 3, "keep": 9,
            "eval_text": str(self._held_out), "activation_checkpointing": "on", "precision": "fp32",
        }  # fmt: skip
        return small_settings(self.source(tied), self.folder / out, **{**options, **changes})

    def add(self, out: str, tied: bool, case: dict[str, Any] | None = None, num_ranks: int = 2, **changes: Any) -> None:
        """A run to launch."""
        settings = self.settings(out, tied, **changes)
        values = settings.model_dump(mode="json", exclude_unset=True)
        own = {"name": out, "num_ranks": num_ranks, "steps": settings.steps, "settings": values}
        self._cases.append({**own, **(case or {})})

    def launch(self) -> None:
        """Runs them one after the other, with what accelerate's launcher would tell each rank."""
        told = environment(parse(launch_lines(CONFIG)[0]))
        env = {name: value for name, value in told.items() if name.startswith(("ACCELERATE_", "FSDP_"))}
        with ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in self._cases]
            for case, free in zip(self._cases, sockets, strict=True):
                free.bind(("127.0.0.1", 0))
                case["port"] = free.getsockname()[1]
        path = self.folder / "runs.json"
        path.write_text(json.dumps(self._cases))
        run_ranks(["-m", "tests.train.fsdp_run", path], 1, env=env)

    def alone(self, out: str, tied: bool, **changes: Any) -> Path:
        """A run in this process."""
        settings = self.settings(out, tied, **changes)
        assert finetune(settings).record is not None
        return self.folder / out

    def record(self, out: str) -> dict[str, Any]:
        """What a result says of its training."""
        record: dict[str, Any] = json.loads((self.folder / out / "ropectl.json").read_text())["training"]
        return record


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Everything that two and four ranks run."""
    runs = Runs(tmp_path_factory.mktemp("runs"))
    for tied in (True, False):
        runs.add(f"full-{tied}", tied)
    runs.add("lora-True", True, **LORA)
    runs.add("begun", False, {"stop_after": 1})
    runs.add("begun", False, {"from_step": 0, "env": {"FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}})
    runs.add("dropout", True, **DROPOUT)
    runs.add("stopped", True, {"stop_after": 4}, **DROPOUT)
    runs.add("stopped", True, {"refused": "learning-rate was"}, **DROPOUT, learning_rate=1.0)  # by every rank
    runs.add("stopped", True, **DROPOUT)
    runs.add("bf16", False, precision="bf16", **UNWATCHED)
    runs.add("shared", True, num_ranks=4, **SHARED)
    runs.add("shared-flat", False, num_ranks=4, **{**SHARED, **FLAT})
    runs.launch()
    return runs


def assert_whole(result: Path, source: Path) -> None:
    """Names, shapes and bytes are those of the source, and nothing is as it was where everything is trained."""
    ours, theirs = weights(result), weights(source)
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in ours.items()} == {
        name: (tensor.shape, tensor.dtype) for name, tensor in theirs.items()
    }
    size = sum(tensor.numel() * tensor.element_size() for tensor in theirs.values())
    assert validate_files(result) == (len(theirs), size)


@pytest.mark.parametrize(("kind", "tied"), [("full", True), ("full", False), ("lora", True)])
def test_two_ranks_train_the_same(runs: Runs, kind: str, tied: bool) -> None:
    name = f"{kind}-{tied}"
    one = runs.alone(f"{name}-alone", tied, **(LORA if kind == "lora" else {}))
    assert_same(one, runs.folder / name)
    assert_whole(runs.folder / name, runs.source(tied))
    ours, theirs = runs.record(name), runs.record(f"{name}-alone")
    assert ours["engine"] == {"kind": "FSDP", "processes": 2, "device": "cpu", "precision": "fp32"}
    assert ours["step"] == theirs["step"] == STEPS - STEPS % EVAL_EVERY
    assert (ours["steps"], ours["tokens"]) == (theirs["steps"], theirs["tokens"])
    for when in ("validation_before", "validation"):
        assert ours[when]["perplexity"] == pytest.approx(theirs[when]["perplexity"], rel=1e-4)


@pytest.mark.parametrize(("whole", "stopped"), [("full-False", "begun"), ("dropout", "stopped")])
def test_stopped_and_gone_on_is_uninterrupted(runs: Runs, whole: str, stopped: str) -> None:
    one, other = runs.folder / whole, runs.folder / stopped
    assert losses(one) == losses(other) and len(losses(one)) == STEPS
    left, right = weights(one), weights(other)
    assert left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_a_state_is_saved_before_the_first_step(runs: Runs) -> None:
    states = sorted(path.name for path in (runs.folder / "full-True.run").glob("state-*"))
    assert states == [f"state-{step:08d}" for step in (0, 3, 5)]
    progress = json.loads((runs.folder / "full-True.run" / states[0] / "progress.json").read_text())
    kept = {Path(name).name for name in progress["files"]}
    assert {"__0_0.distcp", "__1_0.distcp", ".metadata", "random_states_0.pkl", "random_states_1.pkl"} <= kept


def test_half_precision(runs: Runs) -> None:
    """That rotary tables stay float32 and that no first loss differs, every rank has checked."""
    assert losses(runs.folder / "bf16") == pytest.approx(losses(runs.folder / "full-False"), rel=BFLOAT16)
    assert runs.record("bf16")["engine"]["precision"] == "bf16"
    assert_whole(runs.folder / "bf16", runs.source(False))


@pytest.mark.parametrize(("name", "tied", "options"), [("shared", True, {}), ("shared-flat", False, FLAT)])
def test_four_ranks_of_which_two_share_each_sequence(
    runs: Runs, name: str, tied: bool, options: dict[str, Any]
) -> None:
    one = runs.alone(f"{name}-alone", tied, **{**SHARED, **options, "cp_size": 1})
    assert losses(runs.folder / name) == pytest.approx(losses(one), rel=LOSS)
    assert_same(one, runs.folder / name)
    assert_whole(runs.folder / name, runs.source(tied))
