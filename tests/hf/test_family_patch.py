"""Families whose layers read the scaling block in their own way: still exact, undone exactly, or refused."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import nn
from transformers import CONFIG_MAPPING

from ropectl.errors import MethodError, PatchError
from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import rotary_module, text_config_values, verify_rope
from ropectl.hf.model.softmax_scale import latent_layers
from ropectl.rope.registry import parse_method
from scripts.tiny_models import TRAINED, tiny_config, tiny_model
from tests.hf.test_families import BUILT

IDS = (torch.arange(160) * 7).remainder(60).unsqueeze(0) + 2


def logits(model: nn.Module, length: int = 160) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(IDS[:, :length], use_cache=False).logits
    return result


def fresh_logits(model: Any) -> torch.Tensor:
    """What a model built from the config in force, with the same weights, computes."""
    fresh = type(model)(type(model.config).from_dict(model.config.to_dict())).eval()
    fresh.load_state_dict(model.state_dict())
    return logits(fresh)


@pytest.mark.parametrize(
    "model_type", ["deepseek_v3", "deepseek_v2", "minicpm3", "glm4_moe_lite", "longcat_flash", "youtu"]
)
def test_softmax_scale_of_latent_attention_follows_the_block(model_type: str) -> None:
    """mscale_all_dim = 1 multiplies scores by (0.1 ln 4 + 1)^2 in the constructor; a patch and its undo do so too."""
    model = tiny_model(model_type)
    base, scales = logits(model), [layer.scaling for layer in latent_layers(model)]
    assert len(scales) >= 2
    with apply_rope(model, parse_method("yarn:factor=4,mscale=1,mscale_all_dim=1")):
        rises = [layer.scaling / scale for layer, scale in zip(latent_layers(model), scales, strict=True)]
        assert rises == pytest.approx([(0.1 * math.log(4) + 1) ** 2] * len(rises))
        assert torch.equal(logits(model), fresh_logits(model))
        with apply_rope(model, parse_method("pi:factor=2")):
            assert [layer.scaling for layer in latent_layers(model)] == scales
            assert torch.equal(logits(model), fresh_logits(model))
    assert [layer.scaling for layer in latent_layers(model)] == scales and torch.equal(logits(model), base)


LATENT = [
    name for name in BUILT if "qk_rope_head_dim" in CONFIG_MAPPING[name]().get_text_config(decoder=True).to_dict()
]


@pytest.mark.process
@pytest.mark.parametrize("model_type", LATENT)
def test_latent_attention_computes_what_a_new_model_does(model_type: str) -> None:
    model = tiny_model(model_type)
    base = logits(model)
    with apply_rope(model, parse_method("yarn:factor=4,mscale=0.7,mscale_all_dim=1")):
        scaled = logits(model)
        assert torch.equal(scaled, fresh_logits(model)) and not torch.equal(scaled, base)
    assert torch.equal(logits(model), base)


@pytest.mark.parametrize(
    "extra", [{"mscale_all_dim": 1.0}, {"mscale": 1.0, "mscale_all_dim": 1.0, "attention_factor": 1.0}]
)
def test_applying_the_own_scaling_again_changes_nothing(extra: dict[str, float]) -> None:
    """The softmax scale of a checkpoint is part of what it computes, even where no method speaks of it."""
    block = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": TRAINED, "rope_theta": 1e4} | extra
    model = tiny_model("deepseek_v3", rope_parameters=block, max_position_embeddings=4 * TRAINED)
    base, own = logits(model), describe_rope(text_config_values(model)).method
    with apply_rope(model, own, seq_len=160):
        assert torch.equal(logits(model), base)


def test_a_stale_softmax_scale_is_found() -> None:
    model = tiny_model("deepseek_v3")
    method = parse_method("yarn:factor=4,mscale=1,mscale_all_dim=1")
    report = apply_rope(model, method)
    latent_layers(model)[1].scaling = 0.25
    with pytest.raises(PatchError, match=r"Attention layer 1 multiplies its scores by 0\.25"):
        verify_rope(model, report.frequencies)


def test_hints_that_latent_attention_would_obey_are_left_out() -> None:
    method = parse_method("yarn:factor=4,attention_factor=1")
    plain, latent = tiny_config("llama").to_dict(), tiny_config("deepseek_v3").to_dict()
    assert family_patch(method, describe_rope(plain).geometry, plain).hints == {"mscale": 1.0, "mscale_all_dim": 1.0}
    assert family_patch(method, describe_rope(latent).geometry, latent).hints == {}


@pytest.mark.parametrize("spec", ["none", "pi:factor=4", "yarn:factor=4", "llama3:factor=4", "dynamic-yarn"])
def test_the_query_scale_by_position_stays_as_trained(spec: str) -> None:
    """Ministral 3 scales queries by floor(position / trained length): kept, whatever the type of the patch."""
    model = tiny_model("ministral3")
    before = dict(model.config.rope_parameters)
    with apply_rope(model, parse_method(spec), seq_len=160 if spec == "dynamic-yarn" else None):
        block = model.config.rope_parameters
        for key in ("llama_4_scaling_beta", "original_max_position_embeddings"):
            assert block[key] == before[key]
        assert torch.equal(logits(model), fresh_logits(model))
    assert model.config.rope_parameters == before


def test_another_trained_length_takes_the_universal_form_there() -> None:
    """YaRN's ramp for 32 tokens beside a query scale for 64: one key cannot say both."""
    section = tiny_config("ministral3").to_dict()
    geometry = describe_rope(section, original_length=TRAINED // 2).geometry
    patch = family_patch(parse_method("yarn:factor=4"), geometry, section)
    assert patch.rope_parameters["rope_type"] == "longrope"
    assert patch.rope_parameters["original_max_position_embeddings"] == TRAINED


@pytest.mark.parametrize("model_type", ["phi3", "phimoe"])
@pytest.mark.parametrize("spec", ["yarn:factor=4", "ntk-by-parts:factor=4", "ntk:factor=4", "pi:factor=4"])
def test_families_that_accept_few_types_take_the_universal_form(model_type: str, spec: str) -> None:
    model = tiny_model(model_type)
    with apply_rope(model, parse_method(spec)) as report:
        assert report.patch.rope_parameters["rope_type"] in ("default", "longrope")
        assert torch.equal(logits(model), fresh_logits(model))


def test_what_follows_the_length_is_refused_where_only_one_set_is_held() -> None:
    section = tiny_config("phimoe").to_dict()
    geometry = describe_rope(section).geometry
    method = parse_method("longrope:factor=4,long_factor=4:4:4:4:4:4:4:4,short_factor=1:1:1:1:1:1:1:1")
    with pytest.raises(MethodError, match=r"follows the length.*phimoe"):
        family_patch(method, geometry, section)
    assert family_patch(method, geometry, section, 256).rope_parameters["long_factor"] == pytest.approx([4.0] * 8)


def test_what_no_config_can_carry_is_refused() -> None:
    section = tiny_config("dots3_note_text").to_dict()
    with pytest.raises(MethodError, match="number of heads"):
        family_patch(parse_method("dynamic-yarn"), describe_rope(section).geometry, section, 256)


@pytest.mark.parametrize("layers", ["full_attention", "sliding_attention"])
def test_only_the_chosen_layers_are_scaled(layers: str) -> None:
    """The other table, and the logits of a model that has only such layers, stay bit for bit."""
    model = tiny_model("gemma3_text")
    module, base, before = rotary_module(model), logits(model), copy.deepcopy(model.config.to_dict())
    tables = {name: table.clone() for name, table in module.named_buffers()}
    description = describe_rope(text_config_values(model), layers=layers)
    method = parse_method("yarn:factor=4")
    with apply_rope(model, method, layers=layers) as report:
        assert report.layer_type == layers and report.geometry == description.geometry
        changed = {name for name, table in module.named_buffers() if not torch.equal(table, tables[name])}
        assert changed == {f"{layers}_inv_freq", f"{layers}_original_inv_freq"}
        assert module.rope_type[layers] == "yarn"
        verify_rope(model, method.frequencies(description.geometry), layers)
        assert not torch.equal(logits(model), base) and torch.equal(logits(model), fresh_logits(model))
    assert torch.equal(logits(model), base) and model.config.to_dict() == before
    assert not hasattr(module, "_ropectl_geometry")


def test_both_kinds_of_layers_can_be_scaled_one_after_the_other() -> None:
    """The geometry of each is remembered apart: a second patch of one is not stacked on the first."""
    model = tiny_model("gemma3_text")
    base = logits(model)
    with apply_rope(model, parse_method("pi:factor=2"), layers="sliding_attention") as outer:
        with apply_rope(model, parse_method("yarn:factor=4")) as inner:
            verify_rope(model, outer.frequencies, "sliding_attention")
            verify_rope(model, inner.frequencies)
            with apply_rope(model, parse_method("pi:factor=4"), layers="sliding_attention") as again:
                assert again.geometry == outer.geometry
        verify_rope(model, outer.frequencies, "sliding_attention")
    assert torch.equal(logits(model), base)


def test_yarn_without_rounding_is_exact_in_layer_blocks() -> None:
    """transformers reads truncate beside the blocks and not in them: the universal form is not read that way."""
    model = tiny_model("gemma3_text")
    method = parse_method("yarn:factor=4,truncate=false")
    with apply_rope(model, method) as report:
        assert report.patch.rope_parameters["rope_type"] == "longrope"
        assert torch.equal(logits(model), fresh_logits(model))


def test_rounding_that_transformers_does_not_read_is_not_described() -> None:
    block = {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": TRAINED, "rope_theta": 1e6, "truncate": False,
    }  # fmt: skip
    blocks = {"full_attention": block, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    model = tiny_model("gemma3_text", rope_parameters=blocks, max_position_embeddings=4 * TRAINED)
    found = describe_rope(text_config_values(model))
    assert "truncate" in found.warnings[0]
    verify_rope(model, found.method.frequencies(found.geometry))


@pytest.mark.parametrize("model_type", ["gemma3_text", "llama"])
def test_dynamic_scaling_follows_the_length_and_is_undone(model_type: str) -> None:
    """The type that rewrites its table as it runs: in layer blocks as in one block, and gone after the undo."""
    model = tiny_model(model_type)
    base, method = logits(model), parse_method("dynamic-ntk")
    module, description = rotary_module(model), describe_rope(text_config_values(model))
    prefix = f"{description.layer_type}_" if description.layer_type else ""
    with apply_rope(model, method):
        for length in (32, 160):
            logits(model, length)
            wanted = method.frequencies(description.geometry, length)
            assert getattr(module, f"{prefix}inv_freq").tolist() == pytest.approx(wanted.inv_freq, rel=1e-5)
            assert getattr(module, f"{prefix}attention_scaling") == 1.0
    assert torch.equal(logits(model), base)


def test_a_cast_model_with_layer_tables_can_be_patched() -> None:
    """The tables are rebuilt in float32, those of the other layers too."""
    model = tiny_model("gemma3_text").to(torch.bfloat16)
    with apply_rope(model, parse_method("yarn:factor=4")):
        assert {table.dtype for table in rotary_module(model).buffers()} == {torch.float32}
