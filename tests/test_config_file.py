"""YAML is read strictly: a slip is one message with its line, never another value (G05)."""

from __future__ import annotations

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
    ("- 4\n- 5\n", ["KEY: VALUE"]),
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


@pytest.mark.parametrize(("content", "words"), SLIPS, ids=lambda value: value if isinstance(value, str) else "")
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
