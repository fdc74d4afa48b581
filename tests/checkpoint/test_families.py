"""``patch`` over every model type that is scaled: written, read back, loaded by stock classes, described again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError
from ropectl.hf.config.source import read_config
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.hf.model.patch import apply_rope
from ropectl.rope.registry import parse_method
from scripts.tiny_models import tiny_model
from tests.hf.test_families import BUILT, logits

transformers.logging.set_verbosity_error()

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.process
@pytest.mark.parametrize("model_type", BUILT)
def test_patched_and_loaded(model_type: str, tmp_path: Path) -> None:
    """The result in stock classes is what the source computes under the method, to the last bit."""
    tiny_model(model_type).save_pretrained(tmp_path / "source")
    # Where some pairs stand still, YaRN may have no config; some classes are scaled by default.
    method = "yarn" if read_config(str(tmp_path / "source")).rope.geometry.num_turning is None else "ntk"
    request = {"method": method, "factor": 4, "replace": True}
    record = patch_checkpoint(PatchSettings(model=str(tmp_path / "source"), out=tmp_path / "out", **request))
    assert record["verified"]["max_frequency_deviation"] < 1e-5
    assert [step["runtime"] for step in record["next_steps"]] == ["transformers", "vllm", "sglang", "llama.cpp"]
    assert all((step["command"] is None) == bool(step["refusal"]) for step in record["next_steps"])
    newest = next(reading for reading in record["runtimes"] if reading["version"] == "5.24")
    assert newest["loads"] and newest["max_deviation"] < 1e-5, newest["problems"]
    rope = read_config(str(tmp_path / "out")).rope
    assert rope.method == parse_method(f"{method}:factor=4")
    source = read_config(str(tmp_path / "source"))
    assert rope.geometry == source.rope.geometry
    base = load_model(source, LoadOptions(device="cpu"))
    with apply_rope(base, rope.method, geometry=rope.geometry):
        expected = logits(base)
    architecture = json.loads((tmp_path / "out" / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, architecture).from_pretrained(tmp_path / "out").eval()
    assert torch.equal(logits(model), expected)


def tiny_multimodal() -> Any:
    """A model that sees: its text part has positions of three axes."""
    text = {
        "vocab_size": 300, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]},
    }  # fmt: skip
    vision = {"depth": 1, "embed_dim": 32, "hidden_size": 64, "num_heads": 2}
    tokens = {"image_token_id": 1, "video_token_id": 2, "vision_start_token_id": 3, "vision_end_token_id": 4}
    config = transformers.Qwen2VLConfig(text_config=text, vision_config=vision, **tokens)
    torch.manual_seed(0)
    return transformers.Qwen2VLForConditionalGeneration(config).eval()


@pytest.mark.process
@pytest.mark.usefixtures("warm_probe")
@pytest.mark.parametrize("method", ["yarn", "ntk"])
def test_the_text_part_of_a_multimodal_model(tmp_path: Path, method: str) -> None:
    """Only the text part changes, the layout of its axes stays, in both dialects; loaded by the class it names."""
    tiny_multimodal().save_pretrained(tmp_path / "source")
    before = json.loads((tmp_path / "source" / "config.json").read_text())
    record = patch_checkpoint(
        PatchSettings(model=str(tmp_path / "source"), method=method, factor=4, out=tmp_path / "out", verify_logits=True)
    )
    assert record["verified"]["logits"]["max_relative_difference"] == 0
    assert "Qwen2VLForConditionalGeneration.from_pretrained" in record["next_steps"][0]["command"]
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    assert after["vision_config"] == before["vision_config"]
    for block in (after["text_config"]["rope_parameters"], after["text_config"]["rope_scaling"]):
        assert block["mrope_section"] == [2, 3, 3]
    assert read_config(str(tmp_path / "out")).rope.method == parse_method(f"{method}:factor=4")


def test_one_layer_type_is_scaled_and_the_others_stay(tmp_path: Path) -> None:
    """By default the layers that see the whole context; another type by name; one after the other."""
    tiny_model("gemma3_text").save_pretrained(tmp_path / "source")
    before = json.loads((tmp_path / "source" / "config.json").read_text())["rope_parameters"]

    def blocks(name: str) -> Any:
        return json.loads((tmp_path / name / "config.json").read_text())["rope_parameters"]

    def patch(source: str, out: str, **request: Any) -> None:
        patch_checkpoint(PatchSettings(model=str(tmp_path / source), factor=4, out=tmp_path / out, **request))

    patch("source", "full", method="yarn")
    assert blocks("full")["sliding_attention"] == before["sliding_attention"]
    assert blocks("full")["full_attention"]["rope_type"] == "yarn"
    patch("full", "both", method="pi", layers="sliding_attention")
    assert blocks("both")["full_attention"] == blocks("full")["full_attention"]
    assert blocks("both")["sliding_attention"]["rope_type"] == "linear"
    with pytest.raises(ConfigError, match="layer types with a rotary table are"):
        patch("source", "none", method="yarn", layers="cross_attention")
    assert not (tmp_path / "none").exists()


@pytest.mark.process
@pytest.mark.usefixtures("warm_probe")
def test_multimodal_files_of_transformers_4(tmp_path: Path) -> None:
    """Their text keys stand at the top level, and call the layout of the axes a type."""
    tiny_multimodal().save_pretrained(tmp_path / "source")
    path = tmp_path / "source" / "config.json"
    config = json.loads(path.read_text())
    text = config.pop("text_config")
    old = {key: value for key, value in text.items() if key not in ("model_type", "rope_parameters", "dtype")}
    old |= {"rope_theta": 10_000.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    path.write_text(json.dumps({**old, **config}))
    record = patch_checkpoint(
        PatchSettings(model=str(tmp_path / "source"), method="yarn", factor=4, out=tmp_path / "out", verify_logits=True)
    )
    assert record["verified"]["logits"]["max_relative_difference"] == 0
    assert "Qwen2VLForConditionalGeneration.from_pretrained" in record["next_steps"][0]["command"]
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    assert after["rope_scaling"]["mrope_section"] == [2, 3, 3] and after["rope_scaling"]["rope_type"] == "yarn"


@pytest.mark.parametrize("model_type", ["phi", "nemotron", "glm4_moe", "gpt_neox"])
def test_how_much_rotates_is_said_in_both_dialects(model_type: str, tmp_path: Path) -> None:
    """transformers 5 saves the share inside the block only; transformers 4 reads it at the top level only."""
    tiny_model(model_type).save_pretrained(tmp_path / "source")
    before = json.loads((tmp_path / "source" / "config.json").read_text())
    key = "rotary_pct" if model_type == "gpt_neox" else "partial_rotary_factor"
    assert key not in before and before["rope_parameters"]["partial_rotary_factor"] < 1
    patch_checkpoint(PatchSettings(model=str(tmp_path / "source"), method="ntk", factor=4, out=tmp_path / "out"))
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    assert after[key] == after["rope_parameters"]["partial_rotary_factor"] < 1
