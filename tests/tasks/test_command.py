"""``ropectl eval-tasks``: what it says, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.tasks.registry import all_tasks

Run = Callable[..., tuple[int, str, str]]

SMALL = ("eval-tasks", "--task", "passkey", "--length", "256,512", "--depths", "2", "--trials", "1")


@pytest.fixture
def weightless(tmp_path: Path) -> Path:
    """A model of which everything but its weights is there."""
    shutil.copytree(TINY_MODEL_DIR, tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    return tmp_path / "model"


@pytest.mark.process
def test_json_is_the_record_on_disk(ropectl: Run, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    code, stdout, _ = ropectl(*SMALL, "--format", "json", "-o", out)
    assert code == 0 and json.loads(stdout) == json.loads(out.read_text())
    assert ropectl(*SMALL, "-o", out)[0] == 2, "not replaced without being asked"


def test_tables_fit_eighty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    from ropectl.cli import output

    score = {"score": 1.0, "ci_low": 0.866, "ci_high": 1.0, "trials": 25, "answer_logprob": None}
    entry = {
        **score, "beyond_capacity": True, "prompt_tokens": 1000, "answer_tokens": 5, "scores": [1.0] * 25, "tasks": 9,
        "depths": [{**score, "depth": d / 4, "position": d} for d in range(5)],
    }  # fmt: skip
    lengths = [{**entry, "length": 1024 * 2**n} for n in range(6)]
    result = {"metric": "contained", "chance": 2e-37, "uses": 131072, "prompts_sha256": "", "lengths": lengths}
    names = ["variable-tracking:chains=3,hops=2", *list(all_tasks())]
    record = {
        "model": "m", "method": "none", "text": "builtin:stdlib",
        "geometry": {"rotary_dim": 32, "rope_theta": 1e4, "original_max_position_embeddings": 131072 // 4},
        "tasks": [{**result, "task": name} for name in names],
        "average": lengths, "reach": {"uses": None, "used_score": 0.9},
    }  # fmt: skip
    output.present(record, "human")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and not [line for line in lines if "…" in line]
    assert sum("100 (87-100)" in line for line in lines) == 2 * (len(names) + 1), "tasks and their average"
    heads = " ".join(line for line in lines if "k*" in line)
    assert all(f"{n}k*" in heads for n in (1, 2, 4, 8, 16)) and "32k (L)*" in heads, (
        "past the length that none is made for"
    )


@pytest.mark.process
def test_results_for_people(ropectl: Run) -> None:
    code, out, _ = ropectl(*SMALL)
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    assert "passkey: score in % by depth" in out and "To resolve the next length: uses about 35 (passkey)" in out


@pytest.mark.process
@pytest.mark.parametrize(("limit", "expected"), [("0.5", 0), ("1", 3)])
def test_gate(ropectl: Run, limit: str, expected: int) -> None:
    """On 512 tokens the built-in model finds passkeys; on four times as many it finds none."""
    arguments = ("eval-tasks", "--task", "passkey", "--length", "512" if expected == 0 else "512,2k", "--trials", "1")
    code, out, err = ropectl(*arguments, "--min-score", limit)
    assert code == expected and "passkey" in out
    assert ("warning: At 2048 tokens the score is" in err and "below 1." in err) == (expected == 3)


def test_list(ropectl: Run) -> None:
    code, out, err = ropectl("eval-tasks", "--list")
    assert (code, err) == (0, "") and all(name in out for name in all_tasks())
    code, out, _ = ropectl("eval-tasks", "--list", "--format", "json")
    assert [entry["name"] for entry in json.loads(out)] == list(all_tasks())


@pytest.mark.process
def test_list_needs_no_torch() -> None:
    code = (
        "import sys; from ropectl.cli.app import main; sys.argv = ['ropectl', 'eval-tasks', '--list']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.process
@pytest.mark.parametrize("name", list(all_tasks()))
def test_show_prompt_loads_no_weights(ropectl: Run, weightless: Path, name: str) -> None:
    code, out, err = ropectl("eval-tasks", weightless, "--show-prompt", name, "--length", "2k")
    assert code == 0, err
    assert out.startswith(f"{name}, raw: ") and "characters ...]" in out
    code, out, _ = ropectl("eval-tasks", weightless, "--show-prompt", name, "--length", "2k", "--format", "json")
    example = json.loads(out)
    wanted = example["references"] or [example["answer"].strip()]
    assert code == 0 and example["task"] == name and all(text in example["prompt"] for text in wanted)


@pytest.mark.process
def test_dry_run_loads_no_weights(ropectl: Run, weightless: Path) -> None:
    code, out, err = ropectl("eval-tasks", weightless, "--task", "needle", "--length", "512", "--dry-run")
    assert code == 0 and "needle" in out and "20,480" in out, err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "needel"), "There is no task 'needel'.\nDid you mean needle"),
        (("--task", "needle", "--length", "64"), "length = 64 tokens is too short for the task needle"),
        (("--task", "passkey", "--length", "64"), "length = 64 tokens is too short for the task passkey"),
        (("--chat",), "this tokenizer has no chat template"),
        (("--chat", "--bos", "always"), "the chat template decides about the first token"),
        (("--task", "needle", "--text", "./nowhere"), "./nowhere"),
        (("--task", "passkey", "--text", "builtin:stdlib-train"), "--text is used by none of these tasks"),
        (("--min-score", "2"), "min-score = 2 is not possible"),
        (("--trials", "0"), "trials = 0 is not possible"),
        (("--used-score", "0"), "used-score = 0 is not possible"),
        (("-m", "yarm"), "There is no scaling method 'yarm'"),
    ],
)
def test_bad_input_is_found_before_weights_load(
    ropectl: Run, weightless: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = ropectl("eval-tasks", weightless, *arguments)
    assert (code, out) == (2, "") and message in err and "Traceback" not in err


def test_default_lengths_leave_out_what_is_too_short(ropectl: Run, weightless: Path) -> None:
    code, out, err = ropectl("eval-tasks", weightless, "--dry-run", "--task", "common-words")
    assert code == 0 and "left out: 256" in err and "Lengths 512" in out


def test_settings_come_from_a_file(ropectl: Run, tmp_path: Path) -> None:
    file = tmp_path / "tasks.yaml"
    file.write_text("tasks: needle\nlengths: 1k..2k\ntrials: 3\n")
    code, out, err = ropectl("eval-tasks", "--config", file, "--trials", "4", "--print-config")
    settings = json.loads(out)
    assert code == 0, err
    assert (settings["tasks"], settings["lengths"], settings["trials"]) == (["needle"], [1024, 2048], 4)


def test_short_text_is_said_to_be_repeated(ropectl: Run, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("A short story. " * 20)
    arguments = ("eval-tasks", "--task", "needle", "--text", tmp_path / "short.txt", "--length", "512", "--dry-run")
    code, _, err = ropectl(*arguments)
    assert code == 0 and "prompts of 512 repeat it" in err
