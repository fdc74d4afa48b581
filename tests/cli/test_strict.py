"""Every command that reads a model prints the warnings about its config; with --strict they are one error, and nothing is done."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ropectl.cli.app import COMMANDS
from ropectl.cli.binding import CommandLine
from ropectl.compare.factory import model_cells
from ropectl.compare.plan import make_plan
from ropectl.compare.run import compare_methods
from ropectl.evaluate.config import CompareConfig
from ropectl.reporter import Reporter

pytestmark = pytest.mark.usefixtures("short_calibration")

Run = Callable[..., tuple[int, str, str]]

SMALL = ("--length", "64", "--documents", "1")
PASSKEYS = ("--length", "128", "--trials", "1", "--depths", "1")
#: The arguments of a small request, for each command that reads a model.
REQUESTS: dict[str, tuple[str, ...]] = {
    "inspect": (),
    "methods": ("--choose", "--target-length", "1k"),
    "patch": ("--dry-run", "-o", "out"),
    "eval-perplexity": SMALL,
    "eval-passkey": PASSKEYS,
    "eval-tasks": ("--task", "passkey", *PASSKEYS),
    "compare-methods": ("-m", "none", "--dry-run", *PASSKEYS, "--documents", "1"),
    "finetune": ("--dry-run", "--seq-len", "64", "--steps", "1", "--text", __file__, "-o", "out"),
    "harness": ("--task", "x"),
    "verify-runtime": ("--runtime", "vllm", "--python", sys.executable, "--length", "32"),
}

#: A trained length that is not said, and a key that nobody reads.
WARNED = {"rope_parameters": {"rope_type": "linear", "factor": 1.25, "facter": 2.0, "rope_theta": 1e4}}


def test_every_command_that_reads_a_model_has_the_option() -> None:
    fields = {line.name: settings_of(line).model_fields for line in COMMANDS if line.settings}
    assert {name for name, known in fields.items() if "model" in known} == set(REQUESTS)
    assert all("strict" in fields[name] for name in REQUESTS)


def settings_of(line: CommandLine) -> type[BaseModel]:
    module, _, name = line.settings.partition(":")
    kind: type[BaseModel] = getattr(import_module(module), name)
    return kind


@pytest.fixture
def warned(checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = checkpoint(**WARNED)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("command", REQUESTS)
def test_warnings_are_one_error(ropectl: Run, warned: Path, command: str) -> None:
    code, out, err = ropectl(command, warned, *REQUESTS[command], "--strict")
    assert (code, out) == (2, "")
    assert "without the trained length" in err and "facter (did you mean factor?)" in err
    assert err.count("Error") == 1 and err.endswith("Correct the config, or leave out --strict.\n")
    assert len(err.splitlines()) == 4 and list(Path().iterdir()) == []


@pytest.mark.process
@pytest.mark.parametrize("command", REQUESTS)
def test_without_it_they_are_printed(ropectl: Run, warned: Path, command: str) -> None:
    code, out, err = ropectl(command, warned, *REQUESTS[command])
    assert code == (1 if command == "verify-runtime" else 0), err  # this Python has no such runtime
    said = words(out + err)
    assert "without the trained length" in said and "facter (did you mean factor?)" in said


def test_a_config_without_warnings_is_taken(ropectl: Run) -> None:
    code, out, err = ropectl("inspect", "builtin:tiny", "--strict")
    assert code == 0 and out and "warning" not in out + err


def test_the_trained_length_that_is_said_raises_no_warning(ropectl: Run, warned: Path) -> None:
    """One warning is the whole error; each ends with what it is about."""
    code, _, err = ropectl("inspect", warned, "--original-length", "64", "--strict")
    assert code == 2 and "facter" in err and "without the trained length" not in err and len(err.splitlines()) == 2


@pytest.mark.process
@pytest.mark.parametrize("command", REQUESTS)
def test_a_trained_length_against_the_config_is_said(
    ropectl: Run, checkpoint: Callable[..., Path], command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With both numbers, by every command; it is no fault of the config, and --strict takes it."""
    assert all("original_length" in settings_of(line).model_fields for line in COMMANDS if line.name in REQUESTS)
    folder = checkpoint()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for given, is_said in (("100", True), ("128", False)):
        code, out, err = ropectl(command, folder, *REQUESTS[command], "--original-length", given, "--strict")
        assert code == (1 if command == "verify-runtime" else 0), err  # this Python has no such runtime
        assert (f"--original-length {given}, though the config says 128 tokens" in words(out + err)) is is_said


def test_a_trained_length_that_no_config_says_contradicts_none(ropectl: Run, checkpoint: Callable[..., Path]) -> None:
    block = {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e4}
    folder = checkpoint(max_position_embeddings=256, rope_parameters=block)
    assert ropectl("inspect", folder)[0] == 2
    code, out, err = ropectl("inspect", folder, "--original-length", "128")
    assert code == 0 and "though the config says" not in out + err


def test_a_patched_checkpoint_keeps_no_key_without_effect(ropectl: Run, warned: Path, tmp_path: Path) -> None:
    """And one that is written into it afterwards is named, though ropectl.json describes the rest."""
    out = tmp_path / "patched"
    assert ropectl("patch", warned, "-m", "yarn", "--factor", "2", "--replace", "-o", out)[0] == 0
    assert ropectl("inspect", out, "--strict")[0] == 0
    config = json.loads((out / "config.json").read_text())
    assert "facter" not in json.dumps(config)
    config["rope_scaling"]["beta_fats"] = config["rope_parameters"]["beta_fats"] = 16
    (out / "config.json").write_text(json.dumps(config))
    code, _, err = ropectl("inspect", out, "--strict")
    assert code == 2 and "beta_fats (did you mean beta_fast?)" in err


def test_several_warnings_stay_readable_in_80_columns(ropectl: Run, warned: Path) -> None:
    config = json.loads((warned / "config.json").read_text())
    config["rope_parameters"] |= {"long_factor": [1.0], "x" * 200: 1}
    (warned / "config.json").write_text(json.dumps({**config, "rope_theta": 2e4}))
    code, out, _ = ropectl("inspect", warned)
    tail = out[out.index("warning:") :]
    assert code == 0 and tail.count("warning:") == 4 and all(len(line) <= 80 for line in out.splitlines())
    assert all(line.startswith("warning: ") for line in re.split(r"\n(?=warning)", tail))


@pytest.mark.process
@pytest.mark.parametrize("command", ["eval-perplexity", "compare-methods"])
def test_a_length_that_no_document_has_is_an_error(ropectl: Run, tmp_path: Path, command: str) -> None:
    text = tmp_path / "text.txt"
    text.write_text("It was the best of times. " * 60)
    request = (command, "builtin:tiny", "--text", text, "--length", "128,8k", "-m", "none")
    dry = ("--dry-run", "--no-passkey") if command == "compare-methods" else ("--documents", "1")
    code, out, err = ropectl(*request, *dry, "--strict")
    assert (code, out) == (2, "") and "has no document of" in err and "8192 tokens" in err and "--strict" in err
    code, _, err = ropectl(*request, *dry)
    assert code == 0 and "perplexity there is n/a" in words(err)


def test_a_text_that_prompts_repeat_is_an_error(ropectl: Run, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("It was the best of times. " * 20)
    request = (
        "eval-tasks",
        "builtin:tiny",
        "--text",
        tmp_path / "text.txt",
        "--task",
        "needle",
        "--length",
        "1k",
        "--dry-run",
    )
    code, out, err = ropectl(*request, "--strict")
    assert (code, out) == (2, "") and "prompts of 1k repeat it" in words(err) and "--strict" in err
    code, _, err = ropectl(*request)
    assert code == 0 and "prompts of 1k repeat it" in words(err)


@pytest.mark.process
def test_cells_have_the_same_names_with_it(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """A comparison that was begun without it goes on with it, and the other way round: the cells have the same names."""
    shared: dict[str, Any] = {"model": str(checkpoint()), "lengths": (128,), "methods": ("pi",), "factor": 2}
    sizes = {"documents": 1, "trials": 1, "depths": 1}
    loose, strict = (CompareConfig(**shared, **sizes, strict=strict) for strict in (False, True))
    plans = [make_plan(config, Reporter()) for config in (loose, strict)]
    cells = [[c.settings for group in model_cells(plan, plan.base).values() for c in group] for plan in plans]
    assert cells[0] == cells[1] and not any("strict" in json.dumps(settings) for settings in cells[0])
    first = compare_methods(loose, tmp_path / "run").record
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("cells/*")}
    second = compare_methods(strict, tmp_path / "run").record
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("cells/*")} and len(before) > 3
    assert first["rows"] == second["rows"] and second["manifest"]["config"]["strict"] is True
