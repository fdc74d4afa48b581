"""Our formulas against the rotary module of the installed transformers, over a grid of geometries."""

from __future__ import annotations

import itertools

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from ropectl.rope.config_patch import RopeConfigPatch, universal_config
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import parse_method
from tests.rope.test_contract import NAMES, example
from tests.tolerances import PARITY

GEOMETRIES = [
    RopeGeometry(dim, theta, length)
    for dim, theta, length in itertools.product((16, 64, 96, 128), (1e4, 5e5, 1e6), (256, 4096, 131_072))
]
SPECS = [
    "yarn:factor=8,truncate=false",
    "yarn:factor=8,beta_fast=16,beta_slow=2",
    "yarn:factor=8,attention_factor=1",
    "yarn:factor=8,mscale=0.7,mscale_all_dim=1",
    "llama3:factor=8,low_freq_factor=2,high_freq_factor=8",
    "llama3:factor=16,low_freq_factor=1,high_freq_factor=1",
    "ntk-by-parts:factor=8,beta_fast=8",
]


def stock_module(geometry: RopeGeometry, patch: RopeConfigPatch) -> LlamaRotaryEmbedding:
    dim = geometry.rotary_dim
    config = LlamaConfig(hidden_size=dim, num_attention_heads=1, head_dim=dim, **vars(patch))
    return LlamaRotaryEmbedding(config)


def assert_same(ours: ScalingMethod, geometry: RopeGeometry, theirs: LlamaRotaryEmbedding, seq_len: int | None) -> None:
    computed = ours.frequencies(geometry, seq_len)
    assert theirs.inv_freq.tolist() == pytest.approx(computed.inv_freq, rel=PARITY)
    assert theirs.attention_scaling == pytest.approx(computed.attention_factor, rel=PARITY)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_native_config_computes_the_method(name: str, geometry: RopeGeometry) -> None:
    method = example(name, 8.0, geometry)
    patch = method.native_config(geometry)
    if patch is not None:
        assert_same(method, geometry, stock_module(geometry, patch), None)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("spec", SPECS)
def test_parameters_mean_what_they_mean_in_transformers(spec: str, geometry: RopeGeometry) -> None:
    method = parse_method(spec)
    patch = method.native_config(geometry)
    assert patch is not None
    assert_same(method, geometry, stock_module(geometry, patch), None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seq_len", [100, 256, 700, 2048])
def test_frozen_config_computes_the_method_at_every_position(name: str, seq_len: int) -> None:
    geometry = RopeGeometry(32, 10_000.0, 256)
    method = example(name, 8.0, geometry)
    theirs = stock_module(geometry, method.frozen_config(geometry, seq_len))
    for last_position in (seq_len - 1, 5, seq_len + 500):
        theirs(torch.zeros(1), torch.tensor([[last_position]]))
        assert_same(method, geometry, theirs, seq_len)


@pytest.mark.parametrize("name", NAMES)
def test_universal_form_carries_every_table(name: str) -> None:
    geometry = RopeGeometry(32, 10_000.0, 256)
    method = example(name, 4.0, geometry)
    patch = universal_config(geometry, method.frequencies(geometry, 1024), 1024)
    assert_same(method, geometry, stock_module(geometry, patch), 1024)


@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 9000])
def test_dynamic_is_what_a_fresh_stock_module_computes(length: int) -> None:
    geometry = RopeGeometry(64, 10_000.0, 4096)
    method = parse_method("dynamic-ntk:inner_factor=3")
    patch = method.native_config(geometry)
    assert patch is not None
    theirs = stock_module(geometry, patch)
    theirs(torch.zeros(1), torch.tensor([[length - 1]]))
    assert_same(method, geometry, theirs, length)


@pytest.mark.parametrize("seq_len", [256, 257])
def test_longrope_switches_where_the_stock_module_switches(seq_len: int) -> None:
    geometry = RopeGeometry(8, 10_000.0, 256)
    method = parse_method("longrope:factor=4,long_factor=1:2:3:4,short_factor=1:1.1:1.2:1.3")
    theirs = stock_module(geometry, method.native_config(geometry))  # type: ignore[arg-type]
    theirs(torch.zeros(1), torch.tensor([[seq_len - 1]]))
    assert_same(method, geometry, theirs, seq_len)


@pytest.mark.parametrize("factor", [64.0, 1.0])
@pytest.mark.parametrize("spec", ["yarn:factor={}", "yarn:factor={},attention_factor=1.0", "ntk-by-parts:factor={}"])
def test_cos_at_position_zero_is_the_attention_factor(spec: str, factor: float) -> None:
    """Applied once, to cos itself."""
    geometry = RopeGeometry(64, 10_000.0, 4096)
    method = parse_method(spec.format(factor))
    theirs = stock_module(geometry, method.native_config(geometry))  # type: ignore[arg-type]
    cos, sin = theirs(torch.zeros(1), torch.tensor([[0]]))
    expected = method.frequencies(geometry).attention_factor
    assert torch.equal(cos, torch.full_like(cos, expected)) and not sin.any()
