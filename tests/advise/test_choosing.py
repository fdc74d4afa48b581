"""``methods --choose``: from a config to a short list whose commands run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.compare.tuned.recipe import Recipe

Run = Callable[..., tuple[int, str, str]]
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_attention_heads": 4,
    "max_position_embeddings": 4096,
    "rope_theta": 1e4,
    "vocab_size": 64,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def folder(place: Path, **changes: Any) -> str:
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps({**LLAMA, **changes}))
    return str(place)


def chosen(ropectl: Run, *arguments: str) -> dict[str, Any]:
    code, out, err = ropectl("methods", "--choose", "--format", "json", *arguments)
    assert (code, err) == (0, "")
    record: dict[str, Any] = json.loads(out)
    return record


@pytest.mark.parametrize("tuning", ["none", "light", "full"])
@pytest.mark.parametrize("target", ["2k", "32k"])
def test_commands_are_accepted(
    ropectl: Run, tuning: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the built-in model, at factors 4 and 64; the recipe of a training is one that a comparison takes."""
    monkeypatch.chdir(tmp_path)
    record = chosen(ropectl, "--target-length", target, "--tuning", tuning, "builtin:tiny")
    if record["recipe"]:
        path = tmp_path / record["recipe"]["file"]
        path.write_text(record["recipe"]["content"])
        assert Recipe.read(path).shared.steps
    assert len(record["commands"]) >= 3
    for step in record["commands"]:
        program, *words = shlex.split(step["command"])
        assert program == "ropectl"
        dry = words[0] == "patch" or (words[0] == "finetune" and "pose" not in words)
        words = [word for word in words if word != "--dry-run"]
        code, out, err = ropectl(*words, "--dry-run" if dry and words[0] == "patch" else "--print-config")
        assert code == 0 and out, err
    assert [entry for entry in tmp_path.iterdir() if entry.suffix != ".yaml"] == []


@pytest.mark.process
def test_a_comparison_that_it_prints_is_planned(ropectl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first command as it stands: --dry-run plans every cell without weights."""
    monkeypatch.chdir(tmp_path)
    record = chosen(ropectl, "--target-length", "1k", "builtin:tiny")
    words = shlex.split(record["commands"][0]["command"])[1:]
    assert "--dry-run" in words
    code, _, err = ropectl(*words, "--documents", "1", "--trials", "1")
    assert code == 0, err


def test_plain_numbers(ropectl: Run) -> None:
    numbers = "rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096"
    record = chosen(ropectl, "--target-length", "16k", "--geometry", numbers)
    assert record["model"] is None and record["picks"]
    for step in record["commands"]:
        code, out, err = ropectl(*shlex.split(step["command"])[1:])
        assert (code, err) == (0, "") and out


def test_within_the_trained_length_there_is_nothing_to_do(ropectl: Run) -> None:
    record = chosen(ropectl, "--target-length", "512", "builtin:tiny")
    assert record["picks"] == [] and record["first"] is None
    assert "nothing to scale" in record["notes"][0] and "Measure" in record["notes"][0]
    for step in record["commands"]:
        assert ropectl(*shlex.split(step["command"])[1:], "--print-config")[0] == 0


def test_a_scaled_checkpoint(ropectl: Run, tmp_path: Path) -> None:
    """Llama 3.1 is made for 131072 tokens: enough for 100k; for 256k methods take its scaling's place, with --replace."""
    model = folder(tmp_path / "scaled", max_position_embeddings=131072, rope_scaling=LLAMA3, rope_theta=5e5)
    enough = chosen(ropectl, "--target-length", "100000", model)
    assert enough["picks"] == [] and "made for 131072 tokens" in enough["notes"][0]
    record = chosen(ropectl, "--target-length", "256k", model)
    assert record["trained_length"] == 8192 and record["factor"] == 32
    assert any("scaled already" in note and "--compose" in note for note in record["notes"])
    assert record["picks"] and all("--replace" in step["command"] for step in record["commands"])


def test_a_family_s_refusals_are_reasons(ropectl: Run, tmp_path: Path) -> None:
    """In the full layers of Gemma 4 only the fastest pairs turn: pi, ntk and abf are all that its config can say."""
    gemma4 = {
        "model_type": "gemma4_text",
        "hidden_size": 64,
        "head_dim": 16,
        "global_head_dim": 16,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    }
    (tmp_path / "gemma4").mkdir()
    (tmp_path / "gemma4" / "config.json").write_text(json.dumps(gemma4))
    record = chosen(ropectl, "--target-length", "16k", "--tuning", "full", str(tmp_path / "gemma4"))
    assert {pick["name"] for pick in record["picks"]} <= {"pi", "ntk", "abf"} and record["picks"]
    assert "yarn" in {passed["name"] for passed in record["passed"]}


def test_a_runtime_decides(ropectl: Run, tmp_path: Path) -> None:
    model = folder(tmp_path / "llama")
    everywhere = {pick["name"] for pick in chosen(ropectl, "--target-length", "16k", model)["picks"]}
    record = chosen(ropectl, "--target-length", "16k", "--runtime", "llama.cpp", model)
    assert "dynamic-yarn" in everywhere and "dynamic-yarn" not in {pick["name"] for pick in record["picks"]}
    assert any(passed["name"] == "dynamic-yarn" and "llama.cpp" in passed["reason"] for passed in record["passed"])
    for pick in record["picks"]:
        assert "llama.cpp" in {entry["runtime"] for entry in pick["runtimes"]}


def test_a_model_without_rotary_positions(ropectl: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bloom", "hidden_size": 64, "n_head": 4}))
    code, out, err = ropectl("methods", "--choose", "--target-length", "8k", str(tmp_path))
    assert code == 2 and out == "" and err.startswith("Error: ")
    assert "have no rotary positions" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--choose"], ["--target-length 32k"]),
        (["--target-length", "8k"], ["--target-length belongs to --choose"]),
        (["yarn", "--tuning", "light"], ["--tuning belongs to --choose"]),
        (["yarn", "--choose", "--target-length", "8k"], ["yarn is a method"]),
        (["--choose", "--target-length", "x"], ["'x'", "number of tokens"]),
        (["--choose", "--target-length", "8k", "./missing"], ["./missing"]),
        (
            ["./m", "--choose", "--target-length", "8k", "--geometry", "rotary_dim=8"],
            ["cannot be combined with a model"],
        ),
    ],
)
def test_bad_requests(ropectl: Run, arguments: list[str], words: list[str]) -> None:
    code, out, err = ropectl("methods", *arguments)
    assert code == 2 and out == "" and all(word in err for word in words), err


@pytest.mark.process
@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_for_people(width: str) -> None:
    """No torch, nothing cut, commands on lines of their own."""
    code = (
        "import sys; sys.argv = ['ropectl', 'methods', '--choose', '--target-length', '2k', '--tuning', 'light', 'builtin:tiny']\n"
        "from ropectl.cli.app import main\nmain()\nassert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    environment = {"COLUMNS": width, "PATH": "", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    prose, _, commands = done.stdout.partition("# tune.yaml")
    assert "…" not in done.stdout and "\x1b" not in done.stdout and max(map(len, prose.splitlines())) <= int(width)
    assert (
        prose.count("Try first") == 1
        and "Then, in this order" in prose
        and "Passed over" in prose
        and "--finetune tune.yaml" in commands
    )


def test_reasons_are_true_of_the_numbers(ropectl: Run) -> None:
    """One token past L, and a single pair, which every method but pi leaves alone: differences as small as they come."""
    small = chosen(ropectl, "--target-length", "513", "builtin:tiny")
    reasons = {passed["name"]: passed["reason"] for passed in small["passed"]}
    assert "1.002 times closer" in reasons["pi"] and "long training" not in reasons["pi"]
    own, others = (float(word.rstrip(".")) for word in reasons["ntk-by-parts"].split() if word[0].isdigit())
    assert own > others > 1
    assert all(
        "by 1 on average" not in text
        for text in [*reasons.values(), *(reason for pick in small["picks"] for reason in pick["reasons"])]
    )
    numbers = "rotary_dim=2,rope_theta=10000,original_max_position_embeddings=4096"
    single = chosen(ropectl, "--target-length", "8k", "--geometry", numbers)
    for name, text in {passed["name"]: passed["reason"] for passed in single["passed"]}.items():
        assert "more than the others" not in text and "by 1 on" not in text
        assert name != "yarn" or "as they are, as one ranked before" in text
    assert any(
        "leaves the frequencies that carry ordinary text as they are" in text for text in single["picks"][0]["reasons"]
    )


@pytest.mark.parametrize("tuning", ["none", "light", "full"])
def test_an_advice_names_no_winner(ropectl: Run, tuning: str) -> None:
    """Nothing was measured: there is one to try first, and no word says that a method is better."""
    arguments = ("methods", "--choose", "--target-length", "16k", "--tuning", tuning, "builtin:tiny")
    code, out, err = ropectl(*arguments)
    assert (code, err) == (0, "") and "Nothing was measured" in out
    assert not re.search(r"\b(best|better|wins?|winner|superior|recommend\w*)\b", out.partition("# tune.yaml")[0], re.I)
    record = chosen(ropectl, *arguments[2:])
    assert record["first"] == record["picks"][0]["name"]
    _, _, after = out.partition("Try first\n")
    assert after.split()[0] == record["first"]


def test_a_length_that_is_only_claimed_is_warned_of(ropectl: Run) -> None:
    """512 tokens are what the config says, and four times as much is the most that was ever measured."""
    notes = chosen(ropectl, "--target-length", "400", "--original-length", "128", "builtin:tiny")["notes"]
    assert any("--original-length 128, though the config says 512 tokens" in note for note in notes)
    assert any("By the 512 tokens that the config says there is nothing to scale up to 400" in note for note in notes)
    notes = chosen(ropectl, "--target-length", "1k", "--original-length", "128", "builtin:tiny")["notes"]
    assert any("factor is 8" in note and "end at 4" in note for note in notes)
    assert not any("nothing to scale" in note for note in notes)
    assert not any(
        "though the config" in note for note in chosen(ropectl, "--target-length", "1k", "builtin:tiny")["notes"]
    )


@pytest.mark.parametrize("name", ["two\nlines", "bell\x07"])
def test_commands_that_cannot_be_copied_are_not_printed(ropectl: Run, tmp_path: Path, name: str) -> None:
    model = folder(tmp_path / name)
    code, out, err = ropectl("methods", "--choose", "--target-length", "8k", model)
    assert (code, err) == (0, "")
    assert "ropectl compare-methods" not in out and "No commands to copy" in out
    record = chosen(ropectl, "--target-length", "8k", model)
    assert model in shlex.split(record["commands"][0]["command"]), "there the name is whole"
