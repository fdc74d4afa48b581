"""Configs in every dialect, and those that contradict themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, LlamaConfig

from ropectl.errors import ConfigError, MethodError, UnsupportedModelError
from ropectl.hf.config.dialects import check_dialects
from ropectl.hf.config.families import SELF_CONTAINED_CONFIGS
from ropectl.hf.config.geometry import describe_rope, is_self_contained, window_note
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method as method_from
from tests.rope.test_contract import example

BASE = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 131_072, "rope_theta": 500_000.0}
LLAMA31 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}


def config(**changes: Any) -> dict[str, Any]:
    return {**BASE, **changes}


def test_llama31_block_is_understood() -> None:
    found = describe_rope(config(rope_scaling=LLAMA31))
    assert found.geometry == RopeGeometry(128, 500_000.0, 8192)
    assert str(found.method) == "llama3:factor=8"
    assert found.max_position_embeddings == 131_072


def test_both_dialects_say_the_same() -> None:
    old = config(rope_scaling=LLAMA31)
    new = config(rope_parameters={**LLAMA31, "rope_theta": 500_000.0})
    del new["rope_theta"]
    assert describe_rope(old) == describe_rope(new) == describe_rope({**old, **new})


def test_what_transformers_writes_is_understood() -> None:
    written = LlamaConfig(rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6}).to_dict()
    found = describe_rope(written, original_length=2048)
    assert found.geometry == RopeGeometry(128, 1e6, 2048) and str(found.method) == "pi:factor=4"


@pytest.mark.parametrize("block", [None, {}, {"rope_type": "default"}, {"type": "default"}])
def test_null_or_empty_scaling_is_plain_rope(block: Any) -> None:
    found = describe_rope(config(rope_scaling=block))
    assert str(found.method) == "none" and found.geometry.original_max_position_embeddings == 131_072


@pytest.mark.parametrize(
    "block",
    [
        {"type": "linear", "factor": 4.0},
        {"rope_type": "linear", "factor": 4},
        {"type": "linear", "rope_type": "linear", "factor": 4.0},
    ],
)
def test_type_and_rope_type_are_one_key(block: dict[str, Any]) -> None:
    assert str(describe_rope(config(rope_scaling=block)).method) == "pi:factor=4"


def test_contradicting_types_are_refused_with_both_values() -> None:
    with pytest.raises(ConfigError, match=r"'linear'.*'yarn'|'yarn'.*'linear'"):
        describe_rope(config(rope_scaling={"type": "yarn", "rope_type": "linear", "factor": 4.0}))


@pytest.mark.parametrize("factor", [0.5, -2.0, 0.0, float("nan"), float("inf"), None, "x"])
@pytest.mark.parametrize("kind", ["linear", "dynamic", "yarn", "llama3"])
def test_impossible_factors_in_a_config_are_refused(kind: str, factor: Any) -> None:
    """transformers warns about these at most."""
    if kind == "yarn" and factor is None:
        return  # derived from the lengths, as in transformers; tested below
    block = {**LLAMA31, "rope_type": kind, "factor": factor}
    for changed in (block, {key: value for key, value in block.items() if key != "original_max_position_embeddings"}):
        if kind in ("yarn", "llama3") and changed is not block:
            continue  # without the trained length these are refused for that
        with pytest.raises(MethodError, match="factor"):
            describe_rope(config(rope_scaling=changed))


def test_impossible_ramps_in_a_config_are_refused() -> None:
    with pytest.raises(MethodError, match="beta_fast"):
        describe_rope(config(rope_scaling={**LLAMA31, "rope_type": "yarn", "beta_fast": 1, "beta_slow": 32}))
    with pytest.raises(MethodError, match="high_freq_factor"):
        describe_rope(config(rope_scaling={**LLAMA31, "low_freq_factor": 5.0}))


def test_head_dim_wins_over_the_quotient_and_null_falls_back_to_it() -> None:
    wide = config(hidden_size=5120, head_dim=128)
    assert describe_rope(wide).geometry.rotary_dim == 128
    assert describe_rope({**wide, "head_dim": None}).geometry.rotary_dim == 160


@pytest.mark.parametrize("place", ["inside", "beside"])
def test_partial_rotary_models_rotate_a_share(place: str) -> None:
    share = {"partial_rotary_factor": 0.25}
    found = config(rope_parameters={"rope_theta": 1e4, **share}) if place == "inside" else config(**share)
    assert describe_rope(found).geometry.rotary_dim == 32


def test_longrope_lists_must_fit() -> None:
    """The length of a list is checked against rotary_dim / 2."""
    block = {"rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 4096}
    lists = {"short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
    with pytest.raises(MethodError, match="48 values, but this model rotates 64 pairs"):
        describe_rope(config(rope_scaling={**block, **lists}))


def test_unknown_trained_length_is_asked_for() -> None:
    block = {"rope_type": "yarn", "factor": 8.0}
    with pytest.raises(ConfigError, match="--original-length"):
        describe_rope(config(rope_scaling=block))
    found = describe_rope(config(rope_scaling=block), original_length=4096)
    assert found.geometry.original_max_position_embeddings == 4096


def test_linear_without_trained_length_is_derived_and_said() -> None:
    found = describe_rope(config(max_position_embeddings=16_384, rope_scaling={"type": "linear", "factor": 4.0}))
    assert found.geometry.original_max_position_embeddings == 4096
    assert "16384" in found.warnings[0] and "4096" in found.warnings[0]


@pytest.mark.parametrize("name", ["none", "ntk-by-parts", "yarn", "llama3", "longrope", "dynamic-ntk"])
@pytest.mark.parametrize("dialect", ["v4", "v5"])
def test_what_a_method_writes_is_read_back(name: str, dialect: str) -> None:
    geometry = RopeGeometry(128, 500_000.0, 8192)
    method = example(name, 4.0, geometry)
    patch = method.native_config(geometry)
    assert patch is not None
    block = {key: value for key, value in patch.rope_parameters.items() if key != "rope_theta"}
    written = config(max_position_embeddings=patch.max_position_embeddings)
    written |= {"rope_scaling": block} if dialect == "v4" else {"rope_parameters": patch.rope_parameters}
    found = describe_rope(written)
    assert found.geometry == geometry
    for seq_len in (None, 8192, 20_000):
        assert found.method.frequencies(geometry, seq_len) == method.frequencies(geometry, seq_len)


@pytest.mark.parametrize("kind", ["yarn", "longrope"])
def test_a_missing_factor_is_the_ratio_of_the_lengths(kind: str) -> None:
    """Phi-3 leaves it out; transformers derives it."""
    lists = {"short_factor": [1.0] * 64, "long_factor": [2.0] * 64} if kind == "longrope" else {}
    block = {"rope_type": kind, "original_max_position_embeddings": 4096, **lists}
    found = describe_rope(config(rope_scaling=block))
    assert found.method.factor == 32.0
    if kind == "longrope":
        assert found.method.frequencies(found.geometry).attention_factor == pytest.approx(1.190238, abs=1e-6)


def test_dynamic_scaling_starts_where_transformers_starts_it() -> None:
    """No runtime reads the original length next to ``dynamic``; a raised length switches it off."""
    block = {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 128}
    found = describe_rope(config(max_position_embeddings=512, rope_scaling=block))
    assert found.geometry.original_max_position_embeddings == 512
    assert "128" in found.warnings[0] and "512" in found.warnings[0]


def test_the_declared_length_is_what_a_scaled_checkpoint_is_made_for() -> None:
    """Llama 3.1: factor 8 over 8192, but 131072 declared."""
    found = describe_rope(config(rope_scaling=LLAMA31))
    assert found.capacity(found.method) == 131_072
    assert found.capacity(method_from("yarn:factor=4")) == 32_768 and found.capacity(method_from("dynamic-ntk")) is None


def test_blocks_that_disagree_are_refused() -> None:
    """``rope_scaling`` wins in transformers, and the base of the other block is lost silently."""
    lost = {
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500_000.0},
        "rope_scaling": {"type": "linear", "factor": 2.0},
    }
    bare = {key: value for key, value in BASE.items() if key != "rope_theta"}
    with pytest.raises(ConfigError, match="500000"):
        check_dialects({**bare, **lost})
    check_dialects({**BASE, **lost})
    with pytest.raises(ConfigError, match="contradicts itself"):
        check_dialects({**BASE, **lost, "rope_scaling": {"type": "linear", "factor": 4.0}})


def test_top_level_trained_length_wins_as_in_transformers() -> None:
    found = describe_rope(config(original_max_position_embeddings=4096, rope_scaling=LLAMA31))
    assert found.geometry.original_max_position_embeddings == 4096


def test_a_null_base_is_not_the_default_of_the_class() -> None:
    with pytest.raises(ConfigError, match="rope_theta is null"):
        check_dialects(config(rope_theta=None))
    check_dialects(config(rope_theta=None, rope_parameters={"rope_type": "default", "rope_theta": 1e4}))


def test_two_bases_are_said() -> None:
    found = describe_rope(config(rope_parameters={"rope_type": "default", "rope_theta": 1e6}))
    assert found.geometry.rope_theta == 1e6
    assert "500000" in found.warnings[0] and "1e+06" in found.warnings[0]


def test_a_base_that_is_nowhere_is_not_invented() -> None:
    bare = {key: value for key, value in BASE.items() if key != "rope_theta"}
    assert not is_self_contained({**bare, "model_type": "llama"})
    assert is_self_contained(config(model_type="llama")) and not is_self_contained(config(model_type="glm"))
    with pytest.raises(UnsupportedModelError, match="rope_theta"):
        describe_rope(bare)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rope_scaling": {"rope_type": "xpos", "factor": 2.0}}, "'xpos'"),
        ({"model_type": "gptj"}, "gptj.*computes its rotations once"),
        ({"model_type": "zamba2", "use_mem_rope": False}, "use_mem_rope = False"),
        ({"max_position_embeddings": None}, "max_position_embeddings"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedModelError, match=words):
        describe_rope(config(**changes))


def test_fractional_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="whole number"):
        describe_rope(config(max_position_embeddings=4096.5))


def test_text_part_of_a_multimodal_config() -> None:
    assert describe_rope({"text_config": config(), "model_type": "x"}).geometry.rope_theta == 500_000.0


LAYERED = {
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 4096,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
    },
}


def test_the_layers_that_see_all_are_described_unless_others_are_asked_for() -> None:
    found = describe_rope(config(**LAYERED))
    assert (found.layer_type, found.layer_types) == ("full_attention", ("sliding_attention", "full_attention"))
    assert found.geometry.rope_theta == 1e6 and str(found.method) == "pi:factor=8" and found.window is None
    other = describe_rope(config(**LAYERED), layers="sliding_attention")
    assert other.geometry.rope_theta == 1e4 and str(other.method) == "none" and other.window == 4096


def test_a_length_beside_blocks_of_layers_is_not_theirs() -> None:
    blocks = {**LAYERED["rope_parameters"], "full_attention": {**LLAMA31, "rope_theta": 1e6}}
    found = describe_rope(config(**{**LAYERED, "rope_parameters": blocks}, original_max_position_embeddings=4096))
    assert found.geometry.original_max_position_embeddings == 8192


def test_unknown_layers_are_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="sliding_attention, full_attention"):
        describe_rope(config(**LAYERED), layers="global")
    with pytest.raises(ConfigError, match="one rotary table for all its layers"):
        describe_rope(config(), layers="full_attention")


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({"sliding_window": 4096}, 4096),
        ({"sliding_window": None}, None),
        ({"sliding_window": 4096, "use_sliding_window": False}, None),
        ({"sliding_window": 4096, "model_type": "qwen2"}, None),  # its class counts a window only when told to
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 0, "num_hidden_layers": 2}, 4096),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 1, "num_hidden_layers": 2}, None),
        ({"sliding_window": 4096, "layer_types": ["sliding_attention", "linear_attention"]}, 4096),
        ({"sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"]}, None),
        ({"model_type": "mistral"}, 4096),  # the default of its class
        ({"model_type": "mistral", "sliding_window": None}, None),
    ],
)
def test_windows_that_cap_the_reach(changes: dict[str, Any], window: int | None) -> None:
    """The warning names the window and the target; inactive windows are ignored."""
    found = describe_rope(config(**changes))
    assert found.window == window
    note = window_note(found, 16_384)
    assert note is None if window is None else note is not None and "4096" in note and "16384" in note
    assert window_note(found, 4096) is None


def test_scaling_layers_that_see_a_window_only_is_said() -> None:
    """Cohere 2: the layers that see all have no positions."""
    kinds = {"model_type": "cohere2", "sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"]}
    found = describe_rope(config(**kinds))
    assert "4096" in found.warnings[0] and "whole context" in found.warnings[0] and found.window is None


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}


def test_yarn_whose_factor_is_not_the_ratio_is_said() -> None:
    """Both numbers; nothing where they agree."""
    (warning,) = describe_rope(config(max_position_embeddings=40_960, rope_scaling=YARN)).warnings
    assert "40960" in warning and "131072" in warning and "1.25" in warning
    assert not describe_rope(config(rope_scaling=YARN)).warnings


@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_the_other_spelling_of_the_attention_factor_is_explained(place: str) -> None:
    """Net 1.0 where it multiplies, 1.1386 where it is ignored."""
    block = {**YARN, "attn_factor": 0.8782488562869419}
    (warning,) = describe_rope(config(**{place: block})).warnings
    assert "1.0000" in warning and "1.1386" in warning
    both = {**block, "attention_factor": 1.0}  # as a patch writes it for every runtime
    assert not describe_rope(config(**{place: both})).warnings


def test_latent_attention_rotates_its_own_part_of_the_head() -> None:
    assert describe_rope(config(qk_rope_head_dim=64)).geometry.rotary_dim == 64
    assert describe_rope(config(qk_rope_head_dim=64, head_dim=32)).geometry.rotary_dim == 32


@pytest.mark.parametrize(
    ("changes", "pairing"),
    [
        ({}, "half-split"),
        ({"model_type": "cohere"}, "interleaved"),
        ({"model_type": "deepseek_v3", "rope_interleave": True}, "interleaved"),
        ({"model_type": "deepseek_v3", "rope_interleave": False}, "half-split"),
    ],
)
def test_pairing(changes: dict[str, Any], pairing: str) -> None:
    assert describe_rope(config(**changes)).pairing == pairing


def test_a_fixed_alpha_is_the_base_the_model_was_trained_with() -> None:
    """HunYuan calls b * alpha^(d/(d-2)) dynamic; other families ignore alpha."""
    block = {"rope_type": "dynamic", "factor": 1.0, "alpha": 1000.0, "rope_theta": 1e4}
    found = describe_rope(config(model_type="hunyuan_v1_dense", rope_theta=1e4, rope_parameters=block))
    assert str(found.method) == "none" and found.geometry.rope_theta == pytest.approx(1e4 * 1000 ** (128 / 126))
    assert str(describe_rope(config(rope_theta=1e4, rope_parameters=block)).method) == "dynamic-ntk"


def test_phimoe_takes_its_attention_factor_from_keys_of_its_own() -> None:
    block = {
        "rope_type": "longrope", "short_factor": [1.5] * 64, "long_factor": [9.0] * 64, "rope_theta": 1e4,
        "original_max_position_embeddings": 4096, "short_mscale": 1.25, "long_mscale": 1.25,
    }  # fmt: skip
    found = describe_rope(config(model_type="phimoe", rope_theta=1e4, rope_parameters=block))
    frequencies = found.method.frequencies(found.geometry, 100_000)
    assert frequencies.attention_factor == 1.25 and frequencies.inv_freq[0] == pytest.approx(1 / 1.5)
    with pytest.raises(UnsupportedModelError, match=r"short_mscale = 1\.25 and long_mscale = 2"):
        describe_rope(config(model_type="phimoe", rope_theta=1e4, rope_parameters={**block, "long_mscale": 2.0}))


@pytest.mark.parametrize("model_type", SELF_CONTAINED_CONFIGS)
def test_self_contained_files_mean_what_their_class_makes_of_them(model_type: str, tmp_path: Path) -> None:
    """What is read without transformers, for speed, is what its class would have read."""
    content = {
        "model_type": model_type, "hidden_size": 96, "num_attention_heads": 4, "max_position_embeddings": 4096,
        "rope_theta": 77_000.0, **dict.fromkeys(SELF_CONTAINED_CONFIGS[model_type]),
    }  # fmt: skip
    values = {"head_dim": 32, "use_sliding_window": False}
    content |= {key: values[key] for key in SELF_CONTAINED_CONFIGS[model_type]}
    (tmp_path / "config.json").write_text(json.dumps(content))
    assert is_self_contained(content)
    theirs = describe_rope(AutoConfig.from_pretrained(tmp_path).to_dict())
    assert describe_rope(content) == theirs
    for key in SELF_CONTAINED_CONFIGS[model_type]:
        assert not is_self_contained({k: v for k, v in content.items() if k != key})


@pytest.mark.parametrize(("name", "expected"), [("mrope", "none"), ("su", "longrope")])
def test_other_names_of_types(name: str, expected: str) -> None:
    """Qwen2-VL's layout of axes is not a scaling; the first Phi-3 files called LongRoPE by its authors' name."""
    block = {"type": name, "mrope_section": [16, 24, 24], "short_factor": [1.0] * 64, "long_factor": [2.0] * 64}
    rope = describe_rope(config(rope_scaling=block, original_max_position_embeddings=64))
    assert rope.method.name == expected
