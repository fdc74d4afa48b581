"""A comparison says which command measured it, and on what; one that prints it again changes nothing of that."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.compare.run import compare_methods
from ropectl.compare.unfinished import unfinished_comparison
from ropectl.evaluate import setup
from ropectl.evaluate.config import CompareConfig, PasskeyConfig, PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from ropectl.evaluate.retrieval.passkey_evaluation import evaluate_passkey
from ropectl.evaluate.retrieval.task_evaluation import evaluate_tasks
from ropectl.evaluate.tasks_config import TasksConfig
from ropectl.hf.model.loading import resolve_dtype
from ropectl.report.runs_read import read_plan, read_runs

pytestmark = pytest.mark.process

Typed = Callable[..., dict[str, Any]]


@pytest.fixture
def typed(saved_tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs a comparison as a command with these words; returns the manifest that it leaves."""

    def run(words: str, **settings: Any) -> dict[str, Any]:
        about = {"lengths": (128, 200), "documents": 2, "passkey": False, "factor": 4.0, "methods": ("pi",)}
        with monkeypatch.context() as context:
            context.setattr(sys, "argv", ["/somewhere/ropectl", *words.split()])
            compare_methods(CompareConfig(model=str(saved_tiny), **{**about, **settings}), tmp_path / "run")
        found: dict[str, Any] = json.loads((tmp_path / "run" / "comparison.json").read_text())["manifest"]
        return found

    return run


def test_printing_again_keeps_what_measured(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed("measure")
    path = tmp_path / "run" / "comparison.json"
    path.write_text(path.read_text().replace(f'"python": "{sys.version.split()[0]}"', '"python": "3.10.0"'))
    (tmp_path / "run" / "plan.json").unlink()
    before = path.read_bytes()
    assert b'"3.10.0"' in before, "versions are those of the command too"
    typed("print --format latex")
    assert path.read_bytes() == before
    path.unlink()
    assert typed("found nothing that measured")["command"] == ["ropectl", "found", "nothing", "that", "measured"]


def test_the_last_command_that_measured(typed: Typed, tmp_path: Path) -> None:
    """In part: what one command left, another measured. A gate measures nothing; a smaller request is a part of the whole."""
    typed("first", methods=("pi", "ntk"))
    lost = min((tmp_path / "run" / "cells").iterdir())
    lost.unlink()
    assert typed("second", methods=("pi", "ntk"))["command"] == ["ropectl", "second"]
    assert typed("gated", methods=("pi", "ntk"), fail_above=1e9)["command"] == ["ropectl", "second"]
    assert typed("smaller")["command"] == ["ropectl", "second"]
    (run,) = read_runs([tmp_path / "run"])
    assert [row.method for row in run.record.rows] == ["none", "pi:factor=4"], "what was asked for last is shown"
    assert run.record.unfinished is None
    assert typed("other", methods=("yarn",))["command"] == ["ropectl", "other"]
    assert typed("print")["command"] == ["ropectl", "second"], "a comparison that was put aside tells it"


def test_a_training_that_is_done_is_not_measured_again(typed: Typed, tmp_path: Path) -> None:
    text, recipe = tmp_path / "text.txt", tmp_path / "recipe.yaml"
    text.write_text("\n".join(f"def function_{i}(argument):\n    return argument * {i * i}\n" for i in range(400)))
    recipe.write_text(f"text: {text}\nsteps: 2\nbatch_size: 1\nseq_len: 160\nwarmup_steps: 0\n")
    typed("train", finetune=recipe)
    plan = (tmp_path / "run" / "plan.json").read_bytes()
    assert typed("print", finetune=recipe)["command"] == ["ropectl", "train"]
    assert (tmp_path / "run" / "plan.json").read_bytes() == plan


def test_what_it_ran_on_is_what_the_model_was_on(
    typed: Typed, saved_tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was asked for: the live model says it, in every record."""
    live, load = [], setup.load_model
    monkeypatch.setattr(setup, "load_model", lambda *args: live.append(load(*args)) or live[-1])
    told = typed("measure", dtype="bfloat16", attention="eager")
    own = {"device": str(live[0].device), "dtype": "bfloat16", "attention": live[0].config._attn_implementation}
    assert {name: told[name] for name in own} == own and own["attention"] == "eager"
    told = typed("measure", methods=("ntk",))
    assert (told["device"], told["dtype"], told["attention"]) == (
        "cpu",
        "float32",
        live[-1].config._attn_implementation,
    )
    shared = {"model": str(saved_tiny), "lengths": (128,)}
    for record in (
        evaluate_perplexity(PerplexityConfig(**shared, documents=1)),
        evaluate_passkey(PasskeyConfig(**shared, trials=1, depths=1)),
        evaluate_tasks(TasksConfig(**shared, tasks=("passkey",), trials=1, depths=1)),
    ):
        assert record["manifest"]["dtype"] == "float32" and record["manifest"]["attention"] == told["attention"]


def test_an_interrupted_comparison_tells_it_too(typed: Typed, tmp_path: Path) -> None:
    told = typed("measure")
    folder = tmp_path / "copy"
    shutil.copytree(tmp_path / "run", folder)
    plan = read_plan(folder)
    assert plan is not None and plan.manifest.device is None, "written before anything ran"
    assert unfinished_comparison(folder, plan).manifest.device == told["device"]
    for cell in (folder / "cells").iterdir():
        old = json.loads(cell.read_text())
        del old["ran_on"]
        cell.write_text(json.dumps(old))
    assert unfinished_comparison(folder, plan).manifest.device is None, "older cells do not say it"


@pytest.mark.parametrize(
    ("name", "device", "config", "expected"),
    [
        ("auto", "cpu", {"dtype": "bfloat16"}, "float32"),
        ("auto", "cuda", {"dtype": "bfloat16"}, "bfloat16"),
        ("auto", "cuda", {"torch_dtype": torch.float16}, "float16"),
        ("auto", "cuda", {}, None),
        ("float16", "cpu", {"dtype": "bfloat16"}, "float16"),
    ],
)
def test_the_type_before_anything_loads(name: str, device: str, config: dict[str, Any], expected: str | None) -> None:
    assert resolve_dtype(name, device, config) == expected
