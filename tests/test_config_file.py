"""YAML is read strictly: a slip is one message with its line, never another value."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

SLIPS = [
    ("steps: 5\nfactor: 4\nsteps: 7\n", ["steps twice", "line 1", "line 3"]),
    ("batch-size: 5\nbatch_size: 7\n", ["twice", "line 1", "line 2"]),
    ("text: a\nfactor:\t- 4\n  x: [\n", ["line "]),
    ("factor: 4\n\tsteps: 3\n", ["line 2", "a tab", "spaces"]),
    ("factor: [4\nsteps: 3\n", ["line "]),
    ("- 4\n- 5\n", ["is a list", "KEY: VALUE"]),
    ("steps\n", ["is one value", "KEY: VALUE"]),
    ("a: " + 1000 * "[" + 1000 * "]", ["nested too deeply"]),
    ("seed: 1\nsteps: 0777\n", ["0777", "line 2", "read as 511"]),
    ("steps: 1:30\n", ["1:30", "line 1", "read as 90"]),
    ("clip: 1:30.5\n", ["1:30.5", "line 1", "read as 90.5"]),
    ("eval_lengths: []\n", ["eval_lengths", "empty list"]),
    ("model: 2024-01-01\n", ["model = 2024-01-01 is not possible", "quotes"]),
    ("lr: 1e-4\nlearning_rate: 2e-4\n", ["lr and learning_rate", "same setting"]),
    ("format: json\n", ["--format is typed, not set in a file"]),
    ("print-config: true\n", ["--print-config is typed"]),
    ("config: a.yaml\n", ["--config is typed"]),
    ("steps: yes\n", ["steps = true", "number", "true and false"]),
    ("factor: true\n", ["factor = true", "number"]),
    ("clip: off\n", ["clip = false", "number"]),
    ("learning_rate: on\n", ["learning-rate = true", "number"]),
    ("seq_len: true\n", ["seq-len = true", "number"]),
    ("eval_lengths: [true]\n", ["eval-lengths", "number"]),
    ("activation_checkpointing: on\n", ["activation-checkpointing = true", "quotes"]),
    ("schedule: no\n", ["schedule = false", "quotes"]),
    ("merge: maybe\n", ["merge = 'maybe'", "neither true nor false"]),
    ("steps: many\n", ["steps = 'many'", "not a whole number"]),
    ("steps: 2.5\n", ["steps = 2.5", "not a whole number"]),
    ("lora_dropout: 2\n", ["lora-dropout = 2", "less than 1"]),
    ("clip: .nan\n", ["clip = nan", "not a finite number"]),
    ("stps: 4\n", ["'stps'", "Did you mean steps"]),
    ("text: [a, b]\n", ["text = ['a', 'b']", "not a text"]),
]


@pytest.mark.parametrize(("content", "words"), SLIPS, ids=lambda value: value[:20] if isinstance(value, str) else "")
def test_slips(ropectl: Run, tmp_path: Path, content: str, words: list[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    code, out, err = ropectl("finetune", "--config", str(path), "--print-config")
    assert code == 2 and out == "" and err.startswith("Error: ") and len(err.strip().splitlines()) <= 2, err
    assert all(word in err for word in words), err
    assert "input should" not in err and "Value error" not in err


def test_what_is_right_is_read(ropectl: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text('steps: 10\nlearning_rate: 2e-5\nmerge: no\nactivation-checkpointing: "on"\nseq_len: 1k\n')
    code, out, _ = ropectl("finetune", "--config", str(path), "--print-config")
    settings = json.loads(out)
    assert code == 0 and (settings["steps"], settings["merge"], settings["seq_len"]) == (10, False, 1024)
    assert settings["activation_checkpointing"] == "on" and settings["learning_rate"] == 2e-5


def test_merged_mappings_may_repeat_keys(tmp_path: Path) -> None:
    from ropectl.config_file import read_yaml

    path = tmp_path / "c.yaml"
    path.write_text("base: &base {a: 1, b: 2}\nmore:\n  <<: *base\n  a: 3\n")
    assert read_yaml(path)["more"] == {"a": 3, "b": 2}


@pytest.mark.parametrize("option", ["--steps", "--lora-rank", "--clip", "--factor"])
def test_flags_are_refused_in_the_same_words(ropectl: Run, option: str) -> None:
    code, out, err = ropectl("finetune", option, "x")
    assert code == 2 and out == "" and err.startswith(f"Error: {option[2:]} = 'x' is not possible: it is not a ")


NAMED_AS_OPTIONS = [
    ("compare-methods", "method: yarn\nlength: 2k\n", {"methods": ["yarn"], "lengths": [2048]}),
    ("compare-methods", "method: [pi, yarn]\nbatch-size: 2\n", {"methods": ["pi", "yarn"], "batch_size": 2}),
    ("eval-perplexity", "length: 1k..4k\n", {"lengths": [1024, 2048, 4096]}),
    ("eval-passkey", "position: [0, 64]\ngrid: position\n", {"needle_positions": [0, 64]}),
    ("eval-tasks", "task: needle\n", {"tasks": ["needle"]}),
    ("harness", "task: hellaswag\n", {"tasks": ["hellaswag"]}),
    (
        "finetune",
        "lr: 1e-4\neval-length: 2k\nout: there\n",
        {"learning_rate": 1e-4, "eval_lengths": [2048], "out": "there"},
    ),
    ("patch", "out: there\nmethod: yarn\n", {"out": "there", "method": "yarn"}),
]


@pytest.mark.parametrize(("command", "content", "meant"), NAMED_AS_OPTIONS)
def test_settings_go_by_the_names_of_options(
    ropectl: Run, tmp_path: Path, command: str, content: str, meant: dict[str, object]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    code, out, err = ropectl(command, "--config", str(path), "--print-config")
    assert code == 0, err
    settings = json.loads(out)
    assert {name: settings[name] for name in meant} == meant


@pytest.mark.parametrize(
    ("command", "content", "words"),
    [
        ("compare-methods", "method: yarn\nmethods: [pi]\n", ["method and methods", "same setting"]),
        ("eval-perplexity", "out: x.json\n", ["--out is typed, not set in a file"]),
        ("eval-perplexity", "overwrite: true\n", ["--overwrite is typed"]),
        ("eval-tasks", "dry_run: true\n", ["--dry-run is typed"]),
        ("eval-tasks", "list: true\n", ["--list is typed"]),
        ("eval-passkey", "zebra: 1\n", ["no setting 'zebra'", "Known: model"]),
    ],
)
def test_what_is_no_setting(ropectl: Run, tmp_path: Path, command: str, content: str, words: list[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    code, out, err = ropectl(command, "--config", str(path), "--print-config")
    assert code == 2 and out == "" and all(word in err for word in words), err


def test_a_large_file_is_not_read(ropectl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights.yaml"
    path.write_text("a: " + "x" * 1_000_000)
    monkeypatch.setattr(Path, "read_text", None)
    code, out, err = ropectl("finetune", "--config", str(path))
    assert code == 2 and out == "" and "1000003 bytes" in err


def test_every_command_with_a_file_knows_its_options() -> None:
    from ropectl.cli.app import COMMANDS
    from ropectl.cli.binding import option_names

    for command in COMMANDS:
        names = option_names(inspect.signature(command.bound(), eval_str=True))
        assert names["format"] == "format"
        assert ("config" in names) == (command.takes_file and bool(command.settings))
