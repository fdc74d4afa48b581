"""The calls to lm-evaluation-harness: what is printed is what is made. The harness itself is stood in for here;
``tests/slow/test_harness.py`` runs the real one."""

from __future__ import annotations

import importlib.machinery
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ropectl.evaluate.harness import HarnessConfig, harness_calls, harness_script, run_harness
from ropectl.hf.model.rotary import rotary_module
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """A harness that writes down how it was called."""
    made: list[tuple[str, dict[str, Any]]] = []

    def recorder(name: str, result: Any) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            made.append((name, arguments))
            return result

        return call

    results = {
        "results": {"arc": {"alias": "arc", "acc,none": 0.5, "acc_stderr,none": 0.1}},
        "n-samples": {"arc": {"effective": 5}},
    }
    contents: dict[str, dict[str, Any]] = {
        "lm_eval": {"simple_evaluate": recorder("simple_evaluate", results)},
        "lm_eval.models": {},
        "lm_eval.models.huggingface": {"HFLM": recorder("HFLM", "lm")},
        "lm_eval.tasks": {"TaskManager": recorder("TaskManager", "manager")},
        "lm_eval.utils": {"make_table": lambda results: "table"},
    }
    for name, content in contents.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return made


CONFIG = HarnessConfig(
    method="yarn",
    factor=4,
    tasks=("arc", "hellaswag"),
    num_fewshot=2,
    limit=5,
    include_path="my tasks",
    dtype="float32",
)


def seen(made: list[tuple[str, dict[str, Any]]]) -> Any:
    """Calls with the live model replaced by what its rotary table holds."""
    described = []
    for name, arguments in made:
        plain = {key: value for key, value in arguments.items() if key not in ("pretrained", "tokenizer")}
        if "pretrained" in arguments:
            plain["inv_freq"] = rotary_module(arguments["pretrained"]).inv_freq.tolist()
            plain["tokenizer"] = type(arguments["tokenizer"]).__name__
        described.append((name, plain))
    return described


def test_the_script_makes_the_calls_of_run(calls: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    record = run_harness(CONFIG)
    by_run = seen(calls)
    calls.clear()
    exec(compile(harness_script(CONFIG), "script", "exec"), {})
    by_script = seen(calls)
    assert sorted(map(repr, by_run)) == sorted(map(repr, by_script)) and "table" in capsys.readouterr().out
    [(_, model)] = [call for call in by_run if call[0] == "HFLM"]
    geometry = RopeGeometry(rotary_dim=32, rope_theta=10_000.0, original_max_position_embeddings=512)
    expected = parse_method("yarn:factor=4").frequencies(geometry).inv_freq
    assert len(model["inv_freq"]) == len(expected)
    torch.testing.assert_close(torch.tensor(model["inv_freq"]), torch.tensor(expected), rtol=2e-6, atol=0)
    assert model["max_length"] == 2048 and model["batch_size"] == 1
    [(_, asked)] = [call for call in by_run if call[0] == "simple_evaluate"]
    assert asked == {
        "model": "lm",
        "tasks": ["arc", "hellaswag"],
        "num_fewshot": 2,
        "limit": 5,
        "task_manager": "manager",
    }
    assert record["results"]["arc"]["acc,none"] == 0.5 and record["method"] == "yarn:factor=4"


@pytest.mark.parametrize(
    ("settings", "load", "length"),
    [
        ({}, {"model": "builtin:tiny", "method": None}, 512),
        ({"method": "dynamic-ntk", "target_length": 4096}, {"model": "builtin:tiny", "method": "dynamic-ntk", "seq_len": 4096}, 4096),
        ({"method": "pi:factor=2", "length": 600}, {"model": "builtin:tiny", "method": "pi:factor=2"}, 600),
    ],
)  # fmt: skip
def test_lengths_and_frozen_methods(settings: dict[str, Any], load: dict[str, Any], length: int) -> None:
    """A method that follows the length is frozen at the longest context; what stands in the call is what was asked for."""
    calls = harness_calls(HarnessConfig(tasks=("arc",), **settings))
    assert {name: calls["load_patched"][name] for name in load} == load and calls["HFLM"]["max_length"] == length


def test_the_command(calls: list[Any], ropectl: Run, tmp_path: Path) -> None:
    arguments = ["harness", "-m", "yarn", "--factor", "2", "--task", "arc"]
    code, out, _ = ropectl(*arguments)
    assert code == 0 and "ropectl.load_patched(model='builtin:tiny', method='yarn:factor=2')" in out and not calls
    code, out, _ = ropectl(*arguments, "--run", "-o", tmp_path / "result.json")
    assert code == 0 and "0.5000" in out and all(len(line) <= 80 for line in out.splitlines())
    assert json.loads((tmp_path / "result.json").read_text())["results"]["arc"]["acc_stderr,none"] == 0.1


def test_what_cannot_be_is_refused(ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = ropectl("harness")
    assert code == 2 and "--task" in err
    monkeypatch.setattr("ropectl.extras.find_spec", lambda name: None)
    code, _, err = ropectl("harness", "--task", "arc", "--run")
    assert code == 2 and "ropectl[harness]" in err


@pytest.mark.parametrize("options", [["--factor", "4"], ["--target-length", "2k"], ["--replace"]])
def test_scaling_without_a_method_is_refused(ropectl: Run, options: list[str]) -> None:
    """As everywhere: the script would measure the model as it is, and say nothing of the factor."""
    code, out, err = ropectl("harness", "builtin:tiny", "--task", "arc_easy", *options)
    assert code == 2 and not out and "a method" in err and options[0] in err
