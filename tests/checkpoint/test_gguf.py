"""GGUF files as input, as output, and as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.hf.config.source import read_config
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import rotary_module
from ropectl.reporter import Reporter
from ropectl.rope.registry import parse_method
from tests.gguf.loadable_gguf import CONTEXT, VOCABULARY, write_loadable

Checkpoint = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gguf_file(tmp_path: Path) -> Path:
    return write_loadable(tmp_path / "model.gguf", "llama", {}, {})


def logits(model: Any) -> torch.Tensor:
    ids = torch.arange(900)[None] % VOCABULARY
    with torch.no_grad():
        result: torch.Tensor = model(ids).logits
    return result


def patched(ropectl: Run, file: Path, spec: str, *more: str) -> Path:
    out = file.with_name("patched.gguf")
    code, _, err = ropectl("patch", "--gguf-patch", str(file), "-m", spec, "-o", str(out), *more)
    assert code == 0 and all(": ropectl " in line for line in err.splitlines()), err
    return out


@pytest.mark.process
@pytest.mark.parametrize("spec", ["yarn:factor=4", "yarn:factor=4,beta_fast=16", "pi:factor=4", "llama3:factor=4"])
def test_a_scaled_file_is_measured_as_it_is(ropectl: Run, gguf_file: Path, spec: str) -> None:
    """transformers reads weights and base and drops the scaling; ropectl puts it back."""
    out = patched(ropectl, gguf_file, spec)
    base = load_model(read_config(str(gguf_file)), LoadOptions(device="cpu"))
    with apply_rope(base, parse_method(spec)):
        expected = logits(base)
    scaled = load_model(read_config(str(out)), LoadOptions(device="cpu"))
    assert torch.allclose(logits(scaled), expected, atol=1e-3)
    assert (logits(base) - expected).abs().max() > 0.1


@pytest.mark.process
@pytest.mark.usefixtures("warm_probe")
def test_a_checkpoint_out_of_a_file(ropectl: Run, gguf_file: Path, tmp_path: Path) -> None:
    """Weights and tokenizer of the file, the scaling in the config; float32 unless said otherwise."""
    out = tmp_path / "out"
    code, text, err = ropectl(
        "patch", str(gguf_file), "-m", "yarn", "--factor", "4", "-o", str(out), "--verify-logits", "--format", "json"
    )
    record = json.loads(text)
    assert code == 0 and "float32" in err
    assert record["verified"]["logits"]["max_relative_difference"] <= 1e-5
    assert record["files"] == {"rewritten": True} and record["tokenizer_max_length"] == 4 * CONTEXT
    model = AutoModelForCausalLM.from_pretrained(out).eval()
    base = load_model(read_config(str(gguf_file)), LoadOptions(device="cpu"))
    with apply_rope(base, parse_method("yarn:factor=4")):
        assert torch.equal(logits(model), logits(base))
    theirs = AutoTokenizer.from_pretrained(gguf_file.parent, gguf_file=gguf_file.name)
    assert AutoTokenizer.from_pretrained(out)("word1 word2")["input_ids"] == theirs("word1 word2")["input_ids"]


@pytest.mark.process
def test_a_scaled_file_becomes_a_scaled_checkpoint(ropectl: Run, gguf_file: Path, tmp_path: Path) -> None:
    out = patched(ropectl, gguf_file, "llama3:factor=4")
    patch_checkpoint(PatchSettings(model=str(out), out=tmp_path / "out"))
    rope = read_config(str(tmp_path / "out")).rope
    assert rope.method == parse_method("llama3:factor=4")
    assert rope.geometry.original_max_position_embeddings == CONTEXT
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    expected = parse_method("llama3:factor=4").frequencies(rope.geometry).inv_freq
    assert rotary_module(model).inv_freq.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.process
def test_the_type_of_rewritten_weights(gguf_file: Path, tmp_path: Path) -> None:
    settings = PatchSettings(model=str(gguf_file), method="none", out=tmp_path / "out", dtype="bfloat16")
    reporter = Reporter()
    patch_checkpoint(settings, reporter)
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype="auto").dtype == torch.bfloat16
    assert reporter.notes == []


def test_a_patched_checkpoint_hands_its_scaling_on(
    ropectl: Run, gguf_file: Path, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    """The path that ``patch`` prints for methods that llama.cpp's converter drops."""
    spec = "longrope:factor=4,long_factor=1:1:1.5:2:4:4:4:4"
    source = checkpoint(max_position_embeddings=CONTEXT)
    record = patch_checkpoint(PatchSettings(model=str(source), method=spec, out=tmp_path / "out"))
    step = next(step for step in record["next_steps"] if step["runtime"] == "llama.cpp")
    assert "--gguf-patch FILE.gguf -o COPY.gguf" in step["command"]
    command = step["command"].split()[1:]
    copy = tmp_path / "copy.gguf"
    command[command.index("FILE.gguf")], command[command.index("COPY.gguf")] = str(gguf_file), str(copy)
    code, text, err = ropectl(*command, "--format", "json")
    assert code == 0 and all(": ropectl " in line for line in err.splitlines()), err
    rope = read_config(str(copy)).rope
    expected = parse_method(spec).frequencies(rope.geometry, 4 * CONTEXT)
    assert rope.method.frequencies(rope.geometry).inv_freq == pytest.approx(expected.inv_freq, rel=1e-6)
    assert rope.max_position_embeddings == 4 * CONTEXT
    assert f"llama-server -m {copy} -c {4 * CONTEXT}" in json.loads(text)["next_steps"][0]["command"]


def test_policies_hold_for_files_too(ropectl: Run, gguf_file: Path, tmp_path: Path) -> None:
    out = patched(ropectl, gguf_file, "yarn:factor=4")
    again = ["patch", "--gguf-patch", str(out), "-m", "pi:factor=2", "-o", str(tmp_path / "again.gguf")]
    code, _, err = ropectl(*again)
    assert code == 2 and "already scaled: yarn:factor=4" in err and "--compose (pi:factor=8 over 512" in err
    assert ropectl(*again, "--compose")[0] == 0
    assert str(read_config(str(tmp_path / "again.gguf")).rope.method) == "pi:factor=8"


def test_scaling_of_the_file_is_not_lost_to_a_model(
    ropectl: Run, gguf_file: Path, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    out = patched(ropectl, gguf_file, "yarn:factor=4")
    source = checkpoint(max_position_embeddings=CONTEXT)
    command = ["patch", str(source), "-m", "pi:factor=2", "--gguf-patch", str(out), "-o", str(tmp_path / "x.gguf")]
    code, _, err = ropectl(*command)
    assert code == 2 and "already scaled: yarn:factor=4" in err and not (tmp_path / "x.gguf").exists()
    assert ropectl(*command, "--replace")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gguf-patch", "model.gguf", "-m", "pi:factor=2", "-o", "out"], "does not end in .gguf"),
        (["--gguf-patch", "model.gguf", "-m", "pi:factor=2"], "needs a place to write to"),
        (["--gguf-patch", "model.gguf", "-m", "pi:factor=2", "-o", "model.gguf"], "never changed"),
        (["--gguf-patch", "nowhere.gguf", "-m", "pi:factor=2", "-o", "x.gguf"], "nowhere.gguf"),
        (["--gguf-patch", "model.gguf", "-m", "dynamic-yarn", "-o", "x.gguf"], "--freeze-at"),
        (["--gguf-patch", "model.gguf", "-m", "dynamic-ntk", "-o", "x.gguf"], "--freeze-at"),
    ],
)
def test_bad_requests(
    ropectl: Run, gguf_file: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    before = gguf_file.read_bytes()
    monkeypatch.chdir(gguf_file.parent)
    code, out, err = ropectl("patch", *arguments)
    assert code == 2 and out == "" and message in err
    assert [path.name for path in gguf_file.parent.iterdir()] == ["model.gguf"] and gguf_file.read_bytes() == before


def test_dry_run(ropectl: Run, gguf_file: Path) -> None:
    code, out, _ = ropectl("patch", "--gguf-patch", str(gguf_file), "-m", "yarn:factor=4", "--dry-run")
    assert code == 0 and "llama.rope.scaling.type yarn" in out and len(list(gguf_file.parent.iterdir())) == 1


def test_another_models_file_is_refused(ropectl: Run, gguf_file: Path, tmp_path: Path) -> None:
    options = ("-m", "pi:factor=2", "--gguf-patch", str(gguf_file), "-o", str(tmp_path / "x.gguf"))
    code, _, err = ropectl("patch", "builtin:tiny", *options)
    assert code == 2 and "not the same model" in err


def test_settings_of_folders_are_refused_for_files(ropectl: Run, gguf_file: Path) -> None:
    for option in ("--link", "--verify-logits", "--no-merge", "--drop-code"):
        code, _, err = ropectl(
            "patch", "--gguf-patch", str(gguf_file), "-m", "pi", "--factor", "2", "--dry-run", option
        )
        assert code == 2 and "--gguf-patch does not write" in err
