"""Near names: one function says them everywhere, and every kind of name has it."""

from __future__ import annotations

import subprocess
import sys
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
    (["finetune", "--bos", "allways"], "always"),
    (["eval-perplexity", "--attention", "spda"], "sdpa"),
    (["finetune", "--attention", "flash_attn_2"], "flash_attention_2"),
    (["harness", "--task", "x", "--attention", "paged|eagr"], "eager"),
    (["eval-passkey", "--device", "cuba"], "cuda"),
    (["eval-passkey", "--device", "cuba:1"], "cuda"),
    (["eval-passkey", "--device", "gpu"], "cuda"),
    (["patch", "--dtype", "floot16", "-o", "x"], "float16"),
    (["finetune", "--save-dtype", "bfloat", "-o", "x"], "bfloat16"),
    (["methods", "--choose", "--tuning", "lite"], "light"),
    (["inspect", "--format", "jsn"], "json"),
    (["eval-perplexity", "--format", "jsn"], "json"),
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


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [case for case, meant in TYPOS if {"--attention", "--device", "--bos", "--dtype"} & set(case)],
    ids=" ".join,
)
def test_names_of_a_run_are_checked_without_torch(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['ropectl'] + sys.argv[1:]\nfrom ropectl.cli.app import main\n"
        "try: main()\nexcept SystemExit as stop: print(stop.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2 False"


def test_what_libraries_take_is_let_through() -> None:
    """Every attention implementation of the installed transformers, every device type of torch, and what plugins add."""
    import torch
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    from ropectl.hf.run_names import DEVICES, check_attention, check_device

    kernels = ["kernels-community/flash-attn3", "someone/theirs:function", "paged|sdpa", "paged|flash_attention_2"]
    for attention in ["eager", *ALL_ATTENTION_FUNCTIONS.valid_keys(), *kernels]:
        check_attention(attention, trusts_code=False)
    check_attention("its-own", trusts_code=True)
    with pytest.raises(RuntimeError) as refusal:
        torch.device("zzz")
    types = str(refusal.value).split("Expected one of ")[1].split(" device type")[0].split(", ")
    assert len(types) > 10 and set(types) <= set(DEVICES)
    for device in [*types, "cuda:1", "npu:0", "auto", "zebra:2"]:
        check_device(device)
