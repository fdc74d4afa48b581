"""What comes next: a note with a command that runs as printed, with the settings at hand, and never among results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ropectl.advise.requests import InspectSettings
from ropectl.checkpoint.settings import PatchSettings
from ropectl.cli import next_steps, output
from ropectl.cli.plain import PlainConsole
from ropectl.evaluate.config import CompareConfig, PasskeyConfig, PerplexityConfig
from ropectl.evaluate.tasks_config import TasksConfig
from ropectl.rope.registry import all_methods
from ropectl.train.settings import FinetuneSettings

Run = Callable[..., tuple[int, str, str]]
ODD = "it's my model & $HOME"
GEOMETRY = {"rotary_dim": 32, "rope_theta": 1e4, "original_max_position_embeddings": 512}


def typed(steps: list[str]) -> list[list[str]]:
    """The words of the commands, as a shell reads them."""
    return [shlex.split(step.partition(": ")[2]) for step in steps if ": ropectl " in step]


def resolved(ropectl: Run, words: list[str]) -> dict[str, Any]:
    """The settings that a printed comparison takes."""
    assert words[:2] == ["ropectl", "compare-methods"]
    code, out, err = ropectl(*words[1:], "--print-config")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (PerplexityConfig(model=ODD, method="yarn", factor=4, text="my books/*.txt", documents=3, lengths=(512, 1024)),
         {"model": ODD, "methods": ["yarn"], "factor": 4.0, "text": "my books/*.txt", "documents": 3, "lengths": [512, 1024], "passkey": True}),
        (PerplexityConfig(method="pi:factor=2", lengths=(64, 512), dtype="bfloat16", original_length=256, fail_above=9.0),
         {"methods": ["pi:factor=2"], "dtype": "bfloat16", "original_length": 256, "passkey": False, "fail_above": None}),
        (PasskeyConfig(model="m", trials=3, depths=2, distractors=1, seed=7, min_accuracy=0.5, grid="position"),
         {"model": "m", "methods": [], "trials": 3, "depths": 2, "distractors": 1, "seed": 7, "min_accuracy": None}),
        (TasksConfig(model="m", method="yarn", target_length=4096, replace=True, trust_remote_code=True, bos="never"),
         {"methods": ["yarn"], "target_length": 4096, "replace": True, "trust_remote_code": True, "bos": "never"}),
    ],
)  # fmt: skip
def test_after_a_measurement_the_same_is_compared(ropectl: Run, settings: Any, wanted: dict[str, Any]) -> None:
    """On the same model and text, at the same lengths; limits belong to the command that had them."""
    out = Path(f"{ODD}.json")
    page, compared = typed(next_steps.after_measurement(settings, out))
    assert page == ["ropectl", "report", str(out)]
    found = resolved(ropectl, compared)
    assert {name: found[name] for name in wanted} == wanted
    assert typed(next_steps.after_measurement(settings, None)) == [compared]


def test_after_inspection(ropectl: Run) -> None:
    shown = InspectSettings(methods=("yarn", "pi"), factor=4)
    [words] = typed(next_steps.after_inspection(shown, ["yarn:factor=4", "pi:factor=4"], GEOMETRY))
    found = resolved(ropectl, words)
    assert (found["methods"], found["factor"], found["model"]) == (["yarn", "pi"], 4.0, "builtin:tiny")
    [words] = typed(next_steps.after_inspection(InspectSettings(), ["none"], GEOMETRY))
    assert ropectl(*words[1:])[0] == 0 and words[1] == "methods" and "2048" in words
    scaled = ["pi:factor=4"]
    assert typed(next_steps.after_inspection(InspectSettings(model="m"), scaled, GEOMETRY)) == [
        ["ropectl", "compare-methods", "m"]
    ]
    numbers = InspectSettings(geometry="rotary_dim=32,rope_theta=1e4,original_max_position_embeddings=512")
    assert next_steps.after_inspection(numbers, scaled, GEOMETRY) == [], "there is no model to measure"


@pytest.mark.process
@pytest.mark.parametrize("name", all_methods())
@pytest.mark.usefixtures("short_calibration")
def test_after_an_explanation(ropectl: Run, name: str) -> None:
    steps = typed(next_steps.after_explanation(all_methods()[name]))
    assert bool(steps) == (name != "longrope"), "whose divisors nobody can fill in"
    for words in steps:
        code, _, err = ropectl(*words[1:], "--dry-run", "--documents", "1", "--trials", "1", "--length", "512")
        assert code == 0, err


def test_after_a_training_it_is_compared_with_what_it_was_made_from(ropectl: Run) -> None:
    settings = FinetuneSettings(
        model=ODD, method="yarn", factor=2, text="books/*.txt", eval_text="held out/*.txt", eval_documents=5,
        eval_lengths=(512, 1024), eval_every=10, bos="never", seed=3, batch_size=4, dtype="bfloat16",
    )  # fmt: skip
    record = {"output": "my tuned", "method": "yarn:factor=2"}
    found = resolved(ropectl, *typed(next_steps.after_training(settings, record)))
    wanted = {
        "model": ODD, "others": ["my tuned"], "methods": ["yarn"], "factor": 2.0, "text": "held out/*.txt",
        "documents": 5, "lengths": [512, 1024], "bos": "never", "seed": 0, "batch_size": 1, "dtype": "auto",
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted, "the text is the one that was held out"
    [step] = next_steps.after_training(FinetuneSettings(method="yarn", factor=2, text="books/*.txt"), record)
    assert "--text FILE" in step and "books" not in step
    [step] = next_steps.after_training(FinetuneSettings(method="yarn", factor=2), record)
    assert "--text" not in step
    composed = FinetuneSettings(model="m", method="yarn", factor=2, compose=True)
    found = resolved(ropectl, *typed(next_steps.after_training(composed, {**record, "method": "yarn:factor=8"})))
    assert (found["methods"], found["factor"], found["replace"]) == (["yarn:factor=8"], None, True)


def test_a_training_without_held_out_text_is_told_before_it_begins() -> None:
    [hint] = next_steps.before_training(FinetuneSettings(text="books/*.txt"))
    assert "--eval-every 50 --eval-text FILE" in hint
    [hint] = next_steps.before_training(FinetuneSettings())
    assert hint.endswith("--eval-every 50")
    assert next_steps.before_training(FinetuneSettings(eval_every=10)) == []


@pytest.mark.process
def test_a_training_ends_with_a_comparison_that_runs(
    ropectl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    training = ("-m", "yarn", "--factor", "2", "--steps", "1", "--seq-len", "64", "--batch-size", "1")
    code, out, err = ropectl("finetune", *training, "-o", "tuned it")
    assert code == 0 and "ropectl compare-methods" not in out
    lines = err.splitlines()
    hint, began = (next(i for i, line in enumerate(lines) if words in line) for words in ("--eval-every", "step 1/1"))
    assert hint < began
    [words] = typed([line.removeprefix("note: ") for line in lines if "compare-methods" in line])
    small = ("--documents", "1", "--trials", "1", "--depths", "1", "--length", "512", "-o", "run")
    code, _, err = ropectl(*words[1:], *small)
    assert code == 0, err
    [page, *_] = typed([line.removeprefix("note: ") for line in err.splitlines()])
    assert page == ["ropectl", "report", "run"] and ropectl(*page[1:])[0] == 0
    code, out, err = ropectl("finetune", *training, "--dry-run")
    assert code == 0 and "-o PLACE in place of --dry-run" in err and "PLACE" not in out


@pytest.mark.parametrize(
    "spec", ["yarn:factor=4", "abf:rope_theta=40000", "dynamic-yarn", "pi:factor=2", "llama3:factor=4"]
)
def test_the_pick_becomes_a_checkpoint(
    ropectl: Run, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record = {
        "model": "builtin:tiny", "target_length": 2048, "rows": [], "manifest": {"existing": {"builtin:tiny": "none"}},
        "pick": {"model": "builtin:tiny", "method": spec, "training": None},
    }  # fmt: skip
    settings = CompareConfig(factor=4, documents=3, original_length=256)
    page, words = typed(next_steps.after_comparison(record, Path("a run"), settings))
    assert page == ["ropectl", "report", "a run"] and words[:2] == ["ropectl", "patch"]
    code, out, err = ropectl(*words[1:], "--dry-run", "--format", "json")
    assert code == 0, err
    plan = json.loads(out)
    target = 512 if spec == "pi:factor=2" else 1024 if "factor" in spec else 2048  # of 256 tokens, as was said
    assert plan["method"] == spec and plan["target_length"] == target
    assert plan["seq_len"] == (2048 if spec == "dynamic-yarn" else None)


@pytest.mark.parametrize(
    ("pick", "existing", "expected"),
    [
        (None, "none", []),
        ({"model": "m", "method": "none", "training": None}, "none", []),
        ({"model": "m", "method": "pi:factor=2", "training": None}, "pi:factor=2", []),
        ({"model": "other", "method": "pi:factor=2", "training": None}, "none", []),
        (
            {"model": "m", "method": "pi:factor=2", "training": "id"},
            "none",
            ["The pick's checkpoint: run/tuned/pi/model"],
        ),
    ],
)
def test_a_pick_that_is_a_checkpoint_already(pick: Any, existing: str, expected: list[str]) -> None:
    row = {"training": {"id": "id", "checkpoint": "run/tuned/pi/model"}}
    record = {
        "model": "m",
        "target_length": 2048,
        "manifest": {"existing": {"m": existing}},
        "pick": pick,
        "rows": [row],
    }
    assert next_steps.after_comparison(record, Path("run"), CompareConfig(model="m"))[1:] == expected


def test_after_a_patch(ropectl: Run) -> None:
    [words] = typed(next_steps.after_patch(PatchSettings(out=Path(ODD), allow_pickle=True)))
    assert words == ["ropectl", "verify-runtime", ODD, "--endpoint", "http://localhost:8000", "--allow-pickle"]
    [words] = typed(next_steps.after_patch(PatchSettings(out=Path("a.gguf"), gguf_patch=Path("b.gguf"))))
    assert words[2:] == ["a.gguf", "--endpoint", "http://localhost:8080"]
    [words] = typed(next_steps.after_patch(PatchSettings(out=Path("adapter"), merge=False)))
    assert resolved(ropectl, words)["model"] == "adapter", "which no server loads alone"


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "-m", "yarn", "--factor", "4"),
        ("methods", "yarn"),
        ("eval-perplexity", "--length", "64", "--documents", "1"),
        ("eval-passkey", "--length", "128", "--depths", "1", "--trials", "1"),
        ("patch", "-m", "yarn", "--factor", "4", "--dry-run"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_they_are_notes_and_none_beside_json(ropectl: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = ropectl(*arguments)
    notes = [
        line for line in err.splitlines() if line.startswith("note: ") and ("ropectl " in line or "--dry-run" in line)
    ]
    assert code == 0 and 1 <= len(notes) <= 2
    assert not any(note.removeprefix("note: ") in out for note in notes)
    code, out, err = ropectl(*arguments, "--format", "json")
    assert code == 0 and json.loads(out) and "ropectl " not in err and "--dry-run" not in err


def test_a_name_that_cannot_be_printed_is_in_no_command() -> None:
    assert next_steps.after_measurement(PerplexityConfig(model="bell\x07"), Path("two\nlines")) == []


def test_a_command_is_one_line_on_every_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be copied: only the terminal itself wraps it."""
    file = StringIO()
    console = PlainConsole(file=file, force_terminal=True, width=30, highlight=False, markup=False, no_color=True)
    monkeypatch.setattr(output, "stderr_console", lambda: console)
    next_steps.show(
        next_steps.after_measurement(PasskeyConfig(model="a/long/path/to/a/model", trials=3), None), "human"
    )
    assert file.getvalue().count("\n") == 1 and "a/long/path/to/a/model --trials 3" in file.getvalue()
