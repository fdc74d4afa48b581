"""Models in which some pairs stand still: their config is read, and written back in the form that their class takes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from ropectl.errors import ConfigError, MethodError
from ropectl.gguf.scaling_keys import plan_gguf
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.writer import patched_config
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.gguf.gguf_files import write_tiny
from tests.tolerances import EXACT

BLOCKS = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
}
#: Gemma 4 as its class completes it.
GEMMA4: dict[str, Any] = {
    "model_type": "gemma4_text",
    "hidden_size": 2304,
    "num_attention_heads": 8,
    "head_dim": 256,
    "per_layer_config": {"1": {"head_dim": 512}},
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 512,
    "max_position_embeddings": 131_072,
    "rope_parameters": BLOCKS,
}
LFM3 = {**{key: value for key, value in GEMMA4.items() if key != "per_layer_config"}, "model_type": "lfm3"}
GEOMETRY = RopeGeometry(512, 1e6, 131_072, 64)


def changed(config: dict[str, Any], **block: Any) -> dict[str, Any]:
    result = copy.deepcopy(config)
    result["rope_parameters"]["full_attention"].update(block)
    return result


def test_gemma4_as_it_stands() -> None:
    found = describe_rope(GEMMA4)
    assert found.geometry == GEOMETRY and found.method == parse_method("none") and not found.warnings
    sliding = describe_rope(GEMMA4, layers="sliding_attention")
    assert sliding.geometry == RopeGeometry(256, 1e4, 131_072)


def test_a_factor_is_linear_scaling() -> None:
    found = describe_rope(changed(GEMMA4, factor=4.0))
    assert found.method == parse_method("pi:factor=4") and found.geometry.original_max_position_embeddings == 32_768
    assert "Linear scaling by 4 without the trained length" in found.warnings[0]
    said = describe_rope(changed(GEMMA4, factor=4.0), original_length=131_072)
    assert said.geometry == GEOMETRY and not said.overridden
    assert describe_rope(changed(GEMMA4, factor=1.0)).method == parse_method("none")
    with pytest.raises(MethodError, match=r"factor = 0\.5"):
        describe_rope(changed(GEMMA4, factor=0.5))


def test_all_pairs_turning_is_plain() -> None:
    assert describe_rope(changed(GEMMA4, partial_rotary_factor=1.0)).geometry.num_turning is None
    assert describe_rope(changed(GEMMA4, partial_rotary_factor=None)).geometry.num_turning is None
    with pytest.raises(ConfigError, match="num_turning = 0"):
        describe_rope(changed(GEMMA4, partial_rotary_factor=0.001))


@pytest.mark.parametrize("spec", ["none", "pi:factor=4", "ntk:factor=4", "abf:rope_theta=9e6"])
@pytest.mark.parametrize("config", [GEMMA4, LFM3], ids=["gemma4", "lfm3"])
def test_methods_with_a_proportional_block(config: dict[str, Any], spec: str) -> None:
    method, geometry = parse_method(spec), describe_rope(config).geometry
    patch = family_patch(method, geometry, config)
    assert (
        patch.rope_parameters["rope_type"] == "proportional" and patch.rope_parameters["partial_rotary_factor"] == 0.25
    )
    written = patched_config(config, patch)
    assert written["rope_parameters"]["sliding_attention"] == BLOCKS["sliding_attention"]
    again = describe_rope(written, original_length=131_072)
    base = method.config_patch(geometry).rope_parameters["rope_theta"]
    assert (again.geometry.rotary_dim, again.geometry.num_turning) == (geometry.rotary_dim, geometry.num_turning)
    assert again.geometry.rope_theta == base and again.method.name == ("pi" if spec.startswith("pi") else "none")


@pytest.mark.parametrize("spec", ["yarn:factor=4", "llama3:factor=4", "ntk-by-parts:factor=4"])
def test_other_methods_only_where_the_class_takes_the_universal_form(spec: str) -> None:
    method, geometry = parse_method(spec), describe_rope(LFM3).geometry
    block = family_patch(method, geometry, LFM3).rope_parameters
    assert block["rope_type"] == "longrope" and block["partial_rotary_factor"] == 1.0
    assert block["long_factor"][geometry.turning_pairs :] == [1e30] * (geometry.num_pairs - geometry.turning_pairs)
    with pytest.raises(MethodError, match=r"gemma4_text.*wider") as caught:
        family_patch(method, GEOMETRY, GEMMA4)
    assert "pi, ntk, abf" in caught.value.hint


def test_going_back_restores_the_share() -> None:
    """A table in the universal form says share 1; taking the scaling out says the model's own share again."""
    geometry = describe_rope(LFM3).geometry
    scaled = patched_config(LFM3, family_patch(parse_method("yarn:factor=4"), geometry, LFM3))
    restored = patched_config(scaled, family_patch(parse_method("none"), geometry, scaled))
    assert restored["rope_parameters"] == LFM3["rope_parameters"]


@pytest.mark.parametrize("spec", ["dynamic-ntk", "dynamic-yarn"])
def test_what_follows_the_length_has_to_be_frozen(spec: str) -> None:
    with pytest.raises(MethodError, match="pairs that stand still"):
        family_patch(parse_method(spec), describe_rope(LFM3).geometry, LFM3)


@pytest.mark.parametrize("spec", ["none", "pi:factor=4", "ntk:factor=4", "yarn:factor=4"])
def test_a_gguf_file_says_all_by_divisors(tmp_path: Path, spec: str) -> None:
    """Base and divisors together are the table, whichever pairs turn: b^(-2i/d) / f_i."""
    geometry, method = RopeGeometry(16, 1e4, 512, 5), parse_method(spec)
    plan = plan_gguf(write_tiny(tmp_path / "tiny.gguf"), method, geometry)
    base, factors = plan.keys["llama.rope.freq_base"], plan.tensors["rope_freqs.weight"]
    table = [float(base) ** (-2 * i / 16) / f for i, f in enumerate(factors)]
    assert table == pytest.approx(method.frequencies(geometry).inv_freq, rel=EXACT, abs=1e-29)
    assert plan.keys["llama.context_length"] == method.target_length(geometry)
