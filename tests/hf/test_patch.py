"""A method is applied to a live model: verified, undone exactly, and never left unfinished."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

from ropectl.errors import PatchError, UnsupportedModelError
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.model import patch
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import rotary_module, verify_rope
from ropectl.rope.frequencies import RopeFrequencies, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.conftest import make_model, tiny_config
from tests.rope.test_contract import NAMES, example

IDS = torch.arange(300).remainder(64).unsqueeze(0)


def state_of(model: LlamaForCausalLM) -> tuple[Any, ...]:
    module = rotary_module(model)
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    plain = {name: value for name, value in vars(module).items() if not name.startswith("_") and name != "config"}
    return copy.deepcopy(model.config.to_dict()), buffers, copy.deepcopy(plain)


def same_state(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    tensors = all(torch.equal(left[1][name], right[1][name]) for name in left[1] | right[1])
    return left[0] == right[0] and tensors and left[2] == right[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seq_len", [None, 100, 512])
def test_applies_and_undoes_exactly(
    model: LlamaForCausalLM, geometry: RopeGeometry, name: str, seq_len: int | None
) -> None:
    method = example(name, 4.0, geometry)
    before, logits = state_of(model), model(IDS).logits
    with apply_rope(model, method, seq_len=seq_len) as report:
        verify_rope(model, method.frequencies(geometry, seq_len))
        assert report.geometry == geometry
        follows_length = report.patch.rope_parameters["rope_type"] == "dynamic"
        is_other = report.frequencies.inv_freq != trained_inv_freq(geometry)
        assert torch.equal(model(IDS).logits, logits) != (is_other or follows_length)
    assert same_state(before, state_of(model)) and torch.equal(model(IDS).logits, logits)


@pytest.mark.parametrize("name", NAMES)
def test_equals_a_model_built_from_the_same_config(model: LlamaForCausalLM, geometry: RopeGeometry, name: str) -> None:
    method = example(name, 4.0, geometry)
    with apply_rope(model, method, seq_len=300) as report:
        fresh = LlamaForCausalLM(tiny_config(**vars(report.patch))).eval()
        fresh.load_state_dict(model.state_dict())
        assert torch.equal(model(IDS).logits, fresh(IDS).logits)


@pytest.mark.parametrize(
    "first", ["pi:factor=4", "ntk:factor=4", "yarn:factor=4", "dynamic-yarn", "abf:rope_theta=1e6"]
)
def test_a_second_patch_takes_the_place_of_the_first(
    model: LlamaForCausalLM, geometry: RopeGeometry, first: str
) -> None:
    """Never stacked: the config of a patched model describes the patch, not what the model was trained with."""
    before, second = state_of(model), parse_method("yarn:factor=2")
    outer = apply_rope(model, parse_method(first), seq_len=300)
    with apply_rope(model, second) as report:
        assert report.geometry == geometry
        verify_rope(model, second.frequencies(geometry))
    verify_rope(model, outer.frequencies)
    outer.undo()
    assert same_state(before, state_of(model)) and not hasattr(rotary_module(model), "_ropectl_geometry")


def test_the_base_survives(geometry: RopeGeometry) -> None:
    """Scaling a theta-500k model keeps its base."""
    model = make_model(rope_parameters={"rope_type": "default", "rope_theta": 500_000.0})
    base = rotary_module(model).inv_freq.clone()
    with apply_rope(model, parse_method("pi:factor=2")) as report:
        assert report.patch.rope_parameters["rope_theta"] == model.config.rope_parameters["rope_theta"] == 500_000.0
        torch.testing.assert_close(rotary_module(model).inv_freq, base / 2, rtol=1e-7, atol=0)


def test_partial_rotary_share_survives(geometry: RopeGeometry) -> None:
    from transformers import PhiConfig, PhiForCausalLM

    torch.manual_seed(0)
    config = PhiConfig(
        vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=128, rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.5}, pad_token_id=None,
    )  # fmt: skip
    model = PhiForCausalLM(config).eval()
    assert describe_rope(model.config.to_dict()).geometry.rotary_dim == 16
    logits = model(IDS).logits
    with apply_rope(model, parse_method("yarn:factor=4")):
        assert model.config.rope_parameters["partial_rotary_factor"] == 0.5
        assert not torch.equal(model(IDS).logits, logits)
    assert torch.equal(model(IDS).logits, logits)


@pytest.mark.parametrize(
    "spec", ["yarn:factor=4", "dynamic-ntk", "longrope:factor=4,long_factor=1:2:3:4:5:6:7:8", "pi:factor=4"]
)
def test_null_head_dim_works_and_stays_null_after_undo(spec: str) -> None:
    """transformers' yarn and dynamic multiply a null head_dim and die."""
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=128, num_local_experts=2, head_dim=None,
    )  # fmt: skip
    model = MixtralForCausalLM(config).eval()
    head_dim = model.config.head_dim
    with apply_rope(model, parse_method(spec), seq_len=256):
        assert model.config.head_dim == 16
    assert model.config.head_dim == head_dim


def test_hooks_and_identity_of_the_module_survive(model: LlamaForCausalLM) -> None:
    module, calls = rotary_module(model), []
    module.register_forward_hook(lambda *_: calls.append(1))
    with apply_rope(model, parse_method("yarn:factor=4")):
        assert rotary_module(model) is module
        model(IDS)
    assert calls == [1]


def test_the_frozen_method_ignores_what_was_run_before(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    """Short, long, short again give the same table and the same numbers."""
    method, seen = parse_method("dynamic-ntk"), {}
    for seq_len in (50, 256, 50, 128, 200, 128, 256):
        with apply_rope(model, method, geometry=geometry, seq_len=seq_len):
            table = rotary_module(model).inv_freq.clone()
            logits = model(IDS[:, :seq_len]).logits
        if seq_len in seen:
            assert torch.equal(seen[seq_len][0], table) and torch.equal(seen[seq_len][1], logits)
        seen[seq_len] = (table, logits)
    assert torch.equal(seen[50][1], model(IDS[:, :50]).logits)
    assert torch.equal(seen[128][1], model(IDS[:, :128]).logits)


def test_half_precision_buffers_are_found(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    """A cast rounds the frequencies; nothing in transformers complains."""
    expected = RopeFrequencies(trained_inv_freq(geometry))
    verify_rope(model, expected)
    with pytest.raises(PatchError, match="bfloat16, not float32"):
        verify_rope(model.to(torch.bfloat16), expected)


def test_a_cast_model_can_be_patched_because_the_table_is_rebuilt(
    model: LlamaForCausalLM, geometry: RopeGeometry
) -> None:
    """Cast first, patch after; the angles at 32k are those of the float32 model."""
    positions = torch.tensor([[32_768]])
    with apply_rope(model, parse_method("yarn:factor=4")):
        exact = rotary_module(model)(torch.zeros(1), positions)[0]
    model.to(torch.bfloat16)
    with apply_rope(model, parse_method("yarn:factor=4"), geometry=geometry):
        assert torch.equal(rotary_module(model)(torch.zeros(1), positions)[0], exact)


@pytest.mark.parametrize("garbage", [float("nan"), 0.0, 6.9e-18, 1e30])
@pytest.mark.parametrize("pair", [0, 5])
def test_uninitialised_buffers_are_found(
    model: LlamaForCausalLM, geometry: RopeGeometry, garbage: float, pair: int
) -> None:
    """A meta-device load can leave anything there."""
    rotary_module(model).inv_freq[pair] = garbage
    with pytest.raises(PatchError, match=f"Rotary pair {pair}"):
        verify_rope(model, RopeFrequencies(trained_inv_freq(geometry)))


def test_a_wrong_attention_factor_is_found(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    rotary_module(model).attention_scaling = 1.01
    with pytest.raises(PatchError, match=r"attention factor is 1\.01"):
        verify_rope(model, RopeFrequencies(trained_inv_freq(geometry)))


@pytest.mark.parametrize("failure", [RuntimeError("out of memory"), KeyError("rope")])
def test_a_failure_leaves_the_model_as_it_was(
    model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    before = state_of(model)

    def broken(*_: Any) -> None:
        raise failure

    for place in ("verify_rope", "_rebuild"):
        with monkeypatch.context() as context:
            context.setattr(patch, place, broken)
            with pytest.raises(PatchError, match="yarn"):
                apply_rope(model, parse_method("yarn:factor=4"))
        assert same_state(before, state_of(model))


def test_tables_are_rebuilt_on_the_device_they_were_on(model: LlamaForCausalLM) -> None:
    """With the module on another device, every new buffer is put there."""
    module = rotary_module(model).to("meta")
    patch._rebuild(module, model.config)
    assert {buffer.device.type for buffer in module.buffers()} == {"meta"}


def test_rounding_of_transformers_is_not_an_error() -> None:
    """The float32 arithmetic of its llama3 is off by 6e-6 here; the method is applied nevertheless."""
    geometry = RopeGeometry(80, 500_000.0, 32_768)
    heads = {"hidden_size": 80, "num_attention_heads": 1, "num_key_value_heads": 1}
    model = make_model(
        **heads, max_position_embeddings=32_768, rope_parameters={"rope_type": "default", "rope_theta": 500_000.0}
    )
    apply_rope(model, parse_method("llama3:factor=128"), geometry=geometry)


def test_models_without_rotary_embedding_are_refused() -> None:
    model = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=8, n_positions=8))
    with pytest.raises(UnsupportedModelError, match=r"gpt2. have no rotary"):
        rotary_module(model)


def test_models_with_several_rotary_modules_are_refused(model: LlamaForCausalLM) -> None:
    model.second_rotary = type(rotary_module(model))(LlamaConfig())
    with pytest.raises(UnsupportedModelError, match=r"several.*second_rotary"):
        rotary_module(model)
