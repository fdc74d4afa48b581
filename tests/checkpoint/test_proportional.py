"""A tiny Gemma 4, of whose full-attention pairs a quarter turns, through ``patch``: stock transformers computes the method."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import MethodError
from ropectl.hf.config.source import read_config
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from scripts.tiny_models import TRAINED, tiny_model

GEOMETRY = RopeGeometry(32, 1e6, TRAINED, 4)
IDS = (torch.arange(160) * 7).remainder(60).unsqueeze(0) + 2


@pytest.fixture
def gemma4(tmp_path: Path) -> Path:
    """As the hub has them: the width of the full layers' heads beside that of the others."""
    folder = tmp_path / "gemma4"
    tiny_model("gemma4_text").save_pretrained(folder)
    file = folder / "config.json"
    config = json.loads(file.read_text())
    config["global_head_dim"] = config.pop("per_layer_config")["1"]["head_dim"]
    file.write_text(json.dumps(config))
    return folder


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(IDS, use_cache=False).logits
    return result


def loaded(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.mark.process
@pytest.mark.parametrize(
    ("spec", "seq_len"), [("none", None), ("pi:factor=4", None), ("ntk:factor=4", None), ("dynamic-ntk", 256)]
)
def test_written_checkpoint_computes_the_method(gemma4: Path, tmp_path: Path, spec: str, seq_len: int | None) -> None:
    out = tmp_path / "out"
    record = patch_checkpoint(PatchSettings(model=str(gemma4), method=spec, freeze_at=seq_len, out=out))
    assert record["layer_type"] == "full_attention" and record["geometry"] == GEOMETRY.to_json()
    frequencies = parse_method(spec).frequencies(GEOMETRY, seq_len)
    assert read_config(str(out)).rope.method.frequencies(GEOMETRY).inv_freq == pytest.approx(frequencies.inv_freq)
    reference = loaded(gemma4)
    rotary = reference.model.rotary_emb
    rotary.full_attention_inv_freq.copy_(torch.tensor(frequencies.inv_freq))
    assert torch.allclose(logits(loaded(out)), logits(reference), rtol=0, atol=1e-4)
    assert torch.equal(logits(loaded(out)), logits(loaded(gemma4))) == (spec == "none")
    before, after = (json.loads((folder / "config.json").read_text()) for folder in (gemma4, out))
    assert after["rope_parameters"]["sliding_attention"] == before["rope_parameters"]["sliding_attention"]
    assert after["rope_parameters"]["full_attention"]["rope_type"] == "proportional"


@pytest.mark.parametrize("spec", ["pi:factor=4", "ntk:factor=4", "abf:rope_theta=9000000"])
def test_the_sidecar_tells_what_the_block_cannot(gemma4: Path, tmp_path: Path, spec: str) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    patch_checkpoint(PatchSettings(model=str(gemma4), method=spec, out=out))
    rope = read_config(str(out)).rope
    assert rope.method == parse_method(spec) and rope.geometry == GEOMETRY and not rope.warnings
    patch_checkpoint(PatchSettings(model=str(out), method="none", replace=True, out=plain))
    first, last = (json.loads((folder / "config.json").read_text()) for folder in (gemma4, plain))
    assert first["rope_parameters"] == last["rope_parameters"]
    assert first["max_position_embeddings"] == last["max_position_embeddings"]


def test_what_its_class_cannot_carry_is_refused_before_anything_is_written(gemma4: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(MethodError, match="has no config for models of type 'gemma4_text'"):
        patch_checkpoint(PatchSettings(model=str(gemma4), method="yarn:factor=4", out=out))
    with pytest.raises(MethodError, match="follows the length"):
        patch_checkpoint(PatchSettings(model=str(gemma4), method="dynamic-ntk", out=out))
    assert not out.exists()
