"""``eval-passkey`` from the command line: what it records, says, refuses, and when it fails."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ropectl as package
from ropectl.builtin import TINY_MODEL_DIR
from ropectl.evaluate.config import PasskeyConfig
from ropectl.evaluate.judging.statistics import wilson_interval
from ropectl.evaluate.judging.verdicts import reached, uses_verdicts
from ropectl.evaluate.retrieval.passkey_cells import scored_length
from ropectl.evaluate.retrieval.passkey_evaluation import verdict
from ropectl.records import PasskeyLength
from ropectl.reporter import Reporter
from tests.tasks.builders import TEMPLATE, merging_tokenizer

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

Run = Callable[..., tuple[int, str, str]]

SMALL = ("--length", "128,256", "--trials", "2")


@pytest.fixture
def instruct(tmp_path: Path) -> str:
    """The built-in model with a chat template."""
    folder = tmp_path / "instruct"
    shutil.copytree(TINY_MODEL_DIR, folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return str(folder)


@pytest.fixture
def merging(tmp_path: Path) -> str:
    """The built-in model with a tokenizer that merges the end of the question with the key."""
    folder = tmp_path / "merging"
    shutil.copytree(TINY_MODEL_DIR, folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).unlink()
    merging_tokenizer().save_pretrained(folder)
    return str(folder)


def read(result: tuple[int, str, str]) -> dict[str, Any]:
    assert result[0] == 0, result[2]
    document: dict[str, Any] = json.loads(result[1])
    return document


def test_the_record(ropectl: Run) -> None:
    """What was asked, how sure the answer is, and what lies beyond."""
    reporter = Reporter()
    record = package.evaluate_passkey(PasskeyConfig(lengths=(256, 512, 1536), trials=4), reporter)
    assert (record["grid"], record["prompt_format"], record["answers"]) == ("depth", "raw", "tokens")
    assert record["chance"] == pytest.approx(1 / 90_000) and record["num_differing"] is None
    assert [entry["beyond_capacity"] for entry in record["lengths"]] == [False, False, True]
    assert any("1536" in note for note in reporter.notes)
    assert record["cells"] == [cell for entry in record["lengths"] for cell in entry["depths"]]
    assert set(record["k_max"]) == {"0.2", "0.8"} and record["k_max"]["0.2"] >= record["k_max"]["0.8"] == 512
    assert record["reach"]["uses"] == 0 and record["reach"]["uses_possible"] == 512
    assert "about 35 prompts would tell (20 measured)" in record["verdict"]
    assert all(sum(cell["outcomes"]) == cell["correct"] and len(cell["outcomes"]) == 4 for cell in record["cells"])
    example = record["prompt_example"]
    assert "There is an important info" in example and example.endswith("What is the pass key? The pass key is")
    manifest = record["manifest"]
    assert (
        manifest["tokens_computed"]
        < manifest["prompt_tokens"]
        == sum(cell["length"] * cell["trials"] for cell in record["cells"])
    )
    assert manifest["bos_token_id"] == 0 and len(manifest["prompts_sha256"]) == 64


def test_distractors_are_asked_for_by_label(ropectl: Run) -> None:
    """Several labelled keys; the table is length by depth."""
    record = read(ropectl("eval-passkey", "--length", "256", "--trials", "1", "--distractors", "3", "--format", "json"))
    assert record["prompt_example"].endswith("What is the pass key A? The pass key A is")
    _, out, _ = ropectl("eval-passkey", "--length", "256", "--trials", "2", "--distractors", "1", "--depths", "3")
    assert "Passkeys, of 2 a depth" in out and all(depth in out for depth in ("0%", "50%", "100%"))


def test_position_grid(ropectl: Run) -> None:
    record = read(ropectl("eval-passkey", *SMALL, "--grid", "position", "--format", "json"))
    places = [(cell["length"], cell["needle_position"]) for cell in record["cells"]]
    head = places[0][1]
    assert record["grid"] == "position" and places == [(128, head), (128, 64), (256, head), (256, 64), (256, 128)]
    named = read(
        ropectl(
            "eval-passkey", *SMALL, "--grid", "position", "--position", "0,60", "--position", "150", "--format", "json"
        )
    )
    assert [(cell["length"], cell["needle_position"]) for cell in named["cells"]] == [
        (128, head), (128, 60), (256, head), (256, 60), (256, 150),
    ]  # fmt: skip
    _, out, _ = ropectl("eval-passkey", *SMALL, "--grid", "position")
    assert "of 2 a needle" in out and "ends before this position" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_decoding_agrees_with_the_scores(ropectl: Run) -> None:
    """The texts count, and what they say otherwise is told: the built-in model sometimes writes a digit more."""
    scored, decoded = (
        read(ropectl("eval-passkey", *SMALL, *more, "--format", "json")) for more in ((), ("--generate",))
    )
    assert (scored["answers"], decoded["answers"]) == ("tokens", "text")
    assert decoded["manifest"]["prompts_sha256"] == scored["manifest"]["prompts_sha256"]
    pairs = [(a["correct"], b["correct"]) for a, b in zip(scored["cells"], decoded["cells"], strict=True)]
    assert all(text <= tokens for tokens, text in pairs) and any(text for _, text in pairs)
    more = sum(tokens - text for tokens, text in pairs)
    assert decoded["num_differing"] == more == sum(entry["num_differing"] for entry in decoded["lengths"])
    assert f"Decoded greedily, {more} of" in ropectl("eval-passkey", *SMALL, "--generate")[1]


def test_chat(ropectl: Run, instruct: str) -> None:
    """Recorded, and refused where it cannot be."""
    record = read(
        ropectl(
            "eval-passkey", instruct, "--length", "256", "--trials", "2", "--depths", "1", "--chat", "--format", "json"
        )
    )
    assert record["prompt_format"] == "chat" and record["manifest"]["bos_token_id"] == 0
    assert "<|assistant|>\n<think></think>The pass key is" in record["prompt_example"]
    assert record["prompt_example"].count("<|user|>") == 1
    assert all(cell["prompt_tokens"] + cell["answer_tokens"] == cell["length"] for cell in record["cells"])
    raw = read(
        ropectl("eval-passkey", instruct, "--length", "256", "--trials", "2", "--depths", "1", "--format", "json")
    )
    assert raw["prompt_format"] == "raw" and "<|user|>" not in raw["prompt_example"]
    assert raw["manifest"]["prompts_sha256"] != record["manifest"]["prompts_sha256"]


def test_answers_are_read_where_they_have_no_tokens(ropectl: Run, merging: str) -> None:
    code, out, err = ropectl(
        "eval-passkey", merging, "--length", "512", "--depths", "1", "--trials", "1", "--format", "json"
    )
    record = json.loads(out)
    assert code == 0 and record["answers"] == "text" and "generated and read" in err
    assert record["lengths"][0]["answer_logprob"] is None and record["cells"][0]["answer_tokens"] == 8
    _, out, _ = ropectl("eval-passkey", merging, "--length", "512", "--depths", "1", "--trials", "1")
    assert "n/a" in out


def test_gate(ropectl: Run, tmp_path: Path) -> None:
    """Exit code 3 and a line for each length that falls short; the result is there all the same."""
    asked = ("eval-passkey", "--length", "128,2k", "--depths", "2", "--trials", "2", "--format", "json")
    code, out, err = ropectl(*asked, "--min-accuracy", "0.9", "-o", tmp_path / "r.json")
    record = json.loads(out)
    assert [entry["accuracy"] for entry in record["lengths"]] == [1.0, 0.0], "or another length is needed here"
    assert code == 3 and json.loads((tmp_path / "r.json").read_text()) == record
    assert [line for line in err.splitlines() if line.startswith("warning")] == [
        "warning: 2048 tokens: 0.0% of 4 keys found, below --min-accuracy 0.9."
    ]
    assert ropectl(*asked[:1], "--length", "128", *asked[3:], "--min-accuracy", "0.9")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--grid", "round"], ["round", "depth, position"]),
        (["--position", "64"], ["--grid position"]),
        (["--grid", "position", "--depths", "3"], ["--depths", "--position"]),
        (["--grid", "position", "--length", "128", "--position", "100"], ["100", "128", "--position 64"]),
        (["--grid", "position", "--length", "128", "--position", "10,500"], ["500", "beyond", "128"]),
        (["--grid", "position", "--position", "x"], ["position = 'x'", "--position 8k"]),
        (["--grid", "position", "--length", "50"], ["50", "98"]),
        (["--chat"], ["no chat template", "Leave out --chat"]),
        (["--chat", "--bos", "never"], ["bos", "--chat"]),
        (["--min-accuracy", "0"], ["min-accuracy", "0", "greater than 0"]),
        (["--min-accuracy", "90"], ["min-accuracy", "90", "at most 1"]),
    ],
)
def test_bad_input(ropectl: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: list[str]) -> None:
    """Before weights load, exit code 2."""
    from ropectl.evaluate import setup

    monkeypatch.setattr(setup, "load_model", lambda *_: pytest.fail("weights were loaded"))
    code, out, err = ropectl("eval-passkey", *arguments)
    assert code == 2 and not out, err
    assert all(part in err for part in said), err


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            [40, 40, 10],
            "Uses 1024 tokens: at least 90% of the keys are found at 512 and 1024 tokens; 25% of the keys are found at 2048 tokens.",
        ),
        (
            [40, 40, 40],
            "Uses 2048 tokens, the longest that was measured: at least 90% of the keys are found at 512, 1024 and 2048 tokens.",
        ),
        ([10, 40, 40], "Uses no evaluated length: 25% of the keys are found at 512 tokens, 90% wanted."),
        (
            [40, 38, 10],
            "Uses 512 tokens: at least 90% of the keys are found at 512 tokens; 25% of the keys are found at 2048 tokens. "
            "Use at 1024 tokens: not resolved, the 95 % interval holds the limit; about 139 prompts would tell (40 measured).",
        ),
        (
            [38, 40, 40],
            "Use is not resolved at any evaluated length (90% wanted). Use at 512 tokens: not resolved, the 95 % interval holds "
            "the limit; about 139 prompts would tell (40 measured).",
        ),
    ],
)
def test_verdict(found: list[int], sentence: str) -> None:
    results = [PasskeyLength(512 * 2**i, n, 40, n / 40, *wilson_interval(n, 40), -1.0, []) for i, n in enumerate(found)]
    uses = reached(uses_verdicts(map(scored_length, results), 0.9), 512)
    assert verdict(results, uses, 512) == sentence
