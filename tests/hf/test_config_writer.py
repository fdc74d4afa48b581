"""A scaling is written into config.json in both dialects, for one layer type, and nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from transformers import CONFIG_MAPPING, LlamaConfig

from ropectl.errors import ConfigError
from ropectl.hf.config.dialects import check_dialects, check_types
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.writer import patched_config
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import parse_method
from scripts.tiny_models import tiny_config
from tests.rope.test_contract import NAMES, example

GEMMA3_V4 = {
    "model_type": "gemma3_text", "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16, "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 32, "max_position_embeddings": 128,
    "rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}  # fmt: skip

LAYERED = (
    *(
        "gemma3_text",
        "gemma3n_text",
        "olmo3",
        "laguna",
        "mellum",
        "modernbert-decoder",
        "mimo_v2_flash",
        "dory",
        "zaya",
    ),
)


def write(config: dict[str, Any], method: ScalingMethod, layers: str | None = None) -> dict[str, Any]:
    """Describes, patches, and checks that the result is accepted and everything else is as it was."""
    before = copy.deepcopy(config)
    geometry = describe_rope(config, layers=layers).geometry
    result = patched_config(config, family_patch(method, geometry, config), layers)
    assert config == before
    check_types(result)
    check_dialects(result)
    return result


@pytest.mark.parametrize("name", NAMES)
def test_both_dialects_are_one_scaling(name: str) -> None:
    """A reader of either dialect finds the same base, type, factor and lengths."""
    config = {**LlamaConfig(hidden_size=64, num_attention_heads=4).to_dict(), "rope_scaling": None, "x": [1]}
    method = example(name, 4.0, describe_rope(config).geometry)
    result = write(config, method)
    block = result["rope_parameters"]
    assert result["rope_theta"] == block["rope_theta"] and result["x"] == [1]
    old = result["rope_scaling"]
    assert old is None if block["rope_type"] == "default" else old | {"rope_theta": block["rope_theta"]} == block
    read = LlamaConfig.from_dict(result)
    assert read.rope_parameters == block and read.max_position_embeddings == result["max_position_embeddings"]


@pytest.mark.parametrize("model_type", LAYERED)
@pytest.mark.parametrize(
    "spec", ["yarn:factor=4", "abf:rope_theta=5e6", "pi:factor=2", "yarn:factor=4,truncate=false", "none"]
)
def test_one_layer_type_is_written_and_the_others_stay(model_type: str, spec: str) -> None:
    """What transformers reads back is what was written."""
    config = tiny_config(model_type).to_dict()
    description = describe_rope(config)
    result = write(config, parse_method(spec))
    read = CONFIG_MAPPING[model_type].from_dict(result).rope_parameters
    for layer_type in description.layer_types:
        assert read[layer_type] == result["rope_parameters"][layer_type]
        is_chosen = layer_type == description.layer_type
        assert is_chosen or read[layer_type] == config["rope_parameters"][layer_type]
    again = describe_rope(result)
    wanted = parse_method(spec).frequencies(description.geometry)
    found = again.method.frequencies(again.geometry)
    assert found.attention_factor == wanted.attention_factor
    assert found.inv_freq == pytest.approx(wanted.inv_freq, rel=1e-12)


def test_gemma3_is_written_in_both_dialects() -> None:
    """transformers 4 had the global block in rope_scaling, and a base for each kind of layer."""
    result = write(tiny_config("gemma3_text").to_dict(), parse_method("yarn:factor=4"))
    blocks = result["rope_parameters"]
    assert result["rope_theta"] == blocks["full_attention"]["rope_theta"]
    assert result["rope_local_base_freq"] == blocks["sliding_attention"]["rope_theta"]
    assert result["rope_scaling"] | {"rope_theta": result["rope_theta"]} == blocks["full_attention"]


def test_a_file_of_transformers_4_is_patched_as_it_stands() -> None:
    result = patched_config(
        GEMMA3_V4, parse_method("yarn:factor=4").config_patch(describe_rope(config_of(GEMMA3_V4)).geometry)
    )
    assert result["rope_scaling"]["rope_type"] == "yarn" and result["rope_local_base_freq"] == 1e4
    assert CONFIG_MAPPING["gemma3_text"].from_dict(result).rope_parameters == result["rope_parameters"]
    with pytest.raises(ConfigError, match="rope_local_base_freq"):
        bare = {key: value for key, value in GEMMA3_V4.items() if key != "rope_local_base_freq"}
        patched_config(bare, parse_method("none").config_patch(describe_rope(config_of(GEMMA3_V4)).geometry))


def config_of(values: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = CONFIG_MAPPING[values["model_type"]].from_dict(values).to_dict()
    return result


def test_what_transformers_4_cannot_say_is_left_out() -> None:
    """Olmo 3 had one base for all layers there; a scaled window had no key at all."""
    config = tiny_config("olmo3").to_dict()
    assert write(config, parse_method("yarn:factor=4"))["rope_theta"] == 500_000.0
    assert "rope_theta" not in write(config, parse_method("abf:rope_theta=1e6"))
    assert "rope_scaling" not in write(
        tiny_config("gemma3_text").to_dict(), parse_method("pi:factor=2"), "sliding_attention"
    )


def test_unknown_layers_are_refused() -> None:
    patch = parse_method("pi:factor=2").config_patch(describe_rope(tiny_config("llama").to_dict()).geometry)
    with pytest.raises(ConfigError, match="one rotary table"):
        patched_config(tiny_config("llama").to_dict(), patch, "full_attention")
    with pytest.raises(ConfigError, match="sliding_attention, full_attention"):
        patched_config(tiny_config("gemma3_text").to_dict(), patch, "global")


def test_only_the_text_part_of_a_multimodal_config_changes() -> None:
    config = tiny_config("qwen3_5").to_dict()
    config["text_config"]["rope_parameters"]["mrope_section"] = [1, 1, 0]
    result = write(config, parse_method("yarn:factor=4"))
    assert result["text_config"]["rope_parameters"]["mrope_section"] == [1, 1, 0]
    assert {**result, "text_config": None} == {**config, "text_config": None}


@pytest.mark.parametrize("model_type", ["phi3", "phi4_multimodal", "phimoe"])
def test_the_length_beside_the_block_agrees_with_it(model_type: str) -> None:
    """Phi-3: the top-level key wins over the block."""
    result = write(tiny_config(model_type).to_dict(), parse_method("yarn:factor=4"))
    read = CONFIG_MAPPING[model_type].from_dict(result)
    assert result["rope_parameters"]["rope_type"] == "longrope"
    assert read.rope_parameters == result["rope_parameters"]
    assert result["original_max_position_embeddings"] == result["rope_parameters"]["original_max_position_embeddings"]


@pytest.mark.parametrize("stored", [{"head_dim": None}, {}])
def test_null_head_dim_is_written_out(stored: dict[str, Any]) -> None:
    """transformers' yarn multiplies a null head_dim."""
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 128}
    result = write({"model_type": "mixtral", "rope_theta": 1e4, **sizes, **stored}, parse_method("yarn:factor=4"))
    assert result["head_dim"] == 16


def test_names_of_older_families_are_kept() -> None:
    assert write(tiny_config("dbrx").to_dict(), parse_method("yarn:factor=4"))["max_seq_len"] == 256
    neox = write(tiny_config("gpt_neox").to_dict(), parse_method("ntk:factor=4"))
    assert neox["rotary_emb_base"] == neox["rope_theta"] == neox["rope_parameters"]["rope_theta"] > 10_000
