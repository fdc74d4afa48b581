"""Near names: one function says them everywhere, and every kind of name has it (G05)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.names import name_hint, near_names

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("yrn", ["yarn", "ntk"], ["yarn"]),
        ("YARN", ["yarn", "ntk"], ["yarn"]),
        ("compar", ["methods", "compare-methods"], ["compare-methods"]),
        ("methds", ["methods", "compare-methods"], ["methods"]),
        ("xyz", ["yarn", "ntk"], []),
        ("", ["yarn"], []),
        ("e", ["eval-tasks"], []),
    ],
)
def test_near_names(name: str, known: list[str], near: list[str]) -> None:
    assert near_names(name, known) == near


def test_without_a_near_one_all_are_named() -> None:
    assert name_hint("xyz", ["yarn", "ntk"]) == "Known: yarn, ntk."


TYPOS = [
    (["methods", "yrn"], "yarn"),
    (["inspect", "-m", "yran", "--factor", "4"], "yarn"),
    (["inspect", "-m", "yarn:beta_fst=3", "--factor", "4"], "beta_fast"),
    (["eval-tasks", "--task", "needel"], "needle"),
    (["eval-tasks", "--task", "needle:digts=3"], "digits"),
    (["eval-perplexity", "--preset", "yran"], "yarn"),
    (["eval-perplexity", "--protocol", "slidng"], "sliding"),
    (["eval-perplexity", "--text", "builtin:stdlb"], "builtin:stdlib"),
    (["eval-perplexity", "builtin:tni"], "builtin:tiny"),
    (["eval-perplexity", "--dtype", "bfloat"], "bfloat16"),
    (["eval-perplexity", "--bos", "alway"], "always"),
    (["eval-passkey", "--grid", "dept"], "depth"),
    (["finetune", "--packing", "concatt"], "concat"),
    (["finetune", "--positions", "pos"], "pose"),
    (["finetune", "--strategy", "lorra"], "lora"),
    (["finetune", "--schedule", "cosin"], "cosine"),
    (["finetune", "--lora-targets", "al"], "all"),
    (["finetune", "--precision", "bf"], "bf16"),
    (["verify-runtime", "x", "--runtime", "vlm", "--python", "y"], "vllm"),
    (["methods", "--choose", "--target-length", "8k", "--runtime", "lama.cpp"], "llama.cpp"),
    (["finetune", "--tracker", "tensorbord", "-o", "x"], "tensorboard"),
    (["inspect", "--geometry", "rotary_dimm=3"], "rotary_dim"),
    (["compar"], "compare-methods"),
    (["eval-perplexity", "--metod", "yarn"], "--method"),
    (["eval-perplexity", "--lenght", "4k"], "--length"),
]


@pytest.mark.parametrize(
    ("arguments", "meant"), TYPOS, ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_every_kind_of_name_is_suggested(
    ropectl: Run, arguments: list[str], meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ropectl(*arguments)
    assert code == 2 and out == "" and "Traceback" not in err
    text = " ".join(err.replace("│", " ").split())
    is_option = meant.startswith("--")
    assert (f"Possible options: {meant}" if is_option else f"Did you mean {meant}") in text, err


def test_a_setting_in_a_file(ropectl: Run, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("documnts: 3\n")
    code, _, err = ropectl("eval-perplexity", "--config", str(tmp_path / "c.yaml"))
    assert code == 2 and "Did you mean documents?" in err
