"""LoRA adapters carry their scaling beside them, or are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError
from ropectl.hf.config.source import read_config
from ropectl.hf.fingerprint import model_fingerprint
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.hf.model.patch import apply_rope
from tests.conftest import make_model

Checkpoint = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]


def save_adapter(base: Path, folder: Path, modules_to_save: list[str] | None = None) -> Path:
    """An adapter with weights that change the output."""
    model = AutoModelForCausalLM.from_pretrained(base)
    wrapped = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj"], modules_to_save=modules_to_save))
    torch.manual_seed(0)
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name or "modules_to_save" in name:
            parameter.data.add_(torch.randn_like(parameter) * 0.1)
    wrapped.save_pretrained(folder)
    return folder


@pytest.fixture
def adapter(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    return save_adapter(checkpoint(), tmp_path / "adapter")


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(torch.arange(1, 300)[None]).logits
    return result


@pytest.mark.process
def test_without_its_scaling_an_adapter_is_refused(adapter: Path, ropectl: Run, tmp_path: Path) -> None:
    """Not silently run as plain RoPE."""
    for arguments in (["eval-perplexity", str(adapter)], ["patch", str(adapter), "-o", str(tmp_path / "out")]):
        code, _, err = ropectl(*arguments)
        assert code == 2 and "does not say the scaling it was trained with" in err and "-m none" in err


@pytest.mark.process
def test_an_adapter_keeps_its_scaling_beside_it(adapter: Path, ropectl: Run, tmp_path: Path) -> None:
    out = tmp_path / "described"
    code, text, _ = ropectl(
        "patch", str(adapter), "-m", "yarn", "--factor", "4", "--no-merge", "-o", str(out), "--format", "json"
    )
    assert (
        code == 0
        and (out / "adapter_model.safetensors").read_bytes() == (adapter / "adapter_model.safetensors").read_bytes()
    )
    source = read_config(str(out))
    assert str(source.rope.method) == "yarn:factor=4" and source.adapter is not None
    assert source.rope.capacity(source.rope.method) == 512
    code, text, _ = ropectl("eval-perplexity", str(out), "--length", "256", "--documents", "1", "--format", "json")
    assert code == 0 and json.loads(text)["method"] == "yarn:factor=4"
    (out / "ropectl.json").unlink()
    code, _, err = ropectl("eval-perplexity", str(out), "--length", "256", "--documents", "1")
    assert code == 2 and "does not say the scaling" in err


@pytest.mark.process
@pytest.mark.usefixtures("warm_probe")
def test_merging_gives_the_weights_that_peft_computes(adapter: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    record = patch_checkpoint(
        PatchSettings(model=str(adapter), method="yarn", factor=4, out=tmp_path / "out", verify_logits=True)
    )
    assert record["verified"]["logits"]["max_relative_difference"] <= 1e-5
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    with_adapter = PeftModel.from_pretrained(make_model(), adapter).eval()
    base = with_adapter.get_base_model()
    with apply_rope(base, read_config(str(tmp_path / "out")).rope.method):
        expected = logits(with_adapter)
    assert torch.allclose(logits(merged), expected, atol=1e-4)
    assert (expected - logits(make_model())).abs().max() > 0.1
    assert (tmp_path / "out" / "tokenizer.json").is_file()


@pytest.mark.process
@pytest.mark.parametrize("is_tied", [True, False])
def test_a_trained_embedding_survives_tying(tmp_path: Path, is_tied: bool) -> None:
    """An adapter that trained embedding or head apart unties them, in the file as in memory."""
    make_model(tie_word_embeddings=is_tied).save_pretrained(tmp_path / "base")
    adapter = save_adapter(tmp_path / "base", tmp_path / "adapter", ["embed_tokens", "lm_head"])
    in_memory = logits(load_model(read_config(str(adapter)), LoadOptions(device="cpu")))
    patch_checkpoint(PatchSettings(model=str(adapter), method="none", out=tmp_path / "out"))
    assert torch.allclose(logits(AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()), in_memory, atol=1e-5)


def test_what_is_wrong_with_an_adapter_is_said(adapter: Path, tmp_path: Path) -> None:
    before = model_fingerprint(read_config(str(adapter)))
    weights = adapter / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes() + b"")
    assert model_fingerprint(read_config(str(adapter))) != before, "another file is another model"
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": None}))
    with pytest.raises(ConfigError, match="base_model_name_or_path"):
        read_config(str(adapter))
    (adapter / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": "./nowhere"}))
    with pytest.raises(ConfigError, match="nowhere"):
        read_config(str(adapter))


def test_pickled_adapters_need_leave(adapter: Path) -> None:
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(ConfigError, match="pickled weights can run code"):
        load_model(read_config(str(adapter)), LoadOptions(device="cpu"))


def test_a_merged_adapter_carries_the_scaling_of_its_patched_base(adapter: Path, tmp_path: Path) -> None:
    """Whatever the way to a checkpoint, its rotary fields are those of the patched base."""
    base = json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"]
    common = {"method": "yarn", "factor": 4}
    patch_checkpoint(PatchSettings(model=base, out=tmp_path / "base-scaled", **common))
    patch_checkpoint(PatchSettings(model=str(adapter), out=tmp_path / "described", merge=False, **common))
    patch_checkpoint(PatchSettings(model=str(tmp_path / "described"), out=tmp_path / "merged"))
    keys = ("rope_parameters", "rope_scaling", "rope_theta", "max_position_embeddings")
    configs = [json.loads((tmp_path / name / "config.json").read_text()) for name in ("base-scaled", "merged")]
    assert [configs[0].get(key) for key in keys] == [configs[1].get(key) for key in keys]
    assert configs[1]["rope_scaling"]["factor"] == 4.0
