"""p-RoPE: what stands still stays so, and the pairs that turn are scaled as those of any model."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ropectl.advise.inspection import inspect_rope
from ropectl.errors import ConfigError, MethodError
from ropectl.records import to_json
from ropectl.rope.frequencies import critical_dimension, divisors, reach, trained_inv_freq, wavelengths
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.proportional import SHARE, turning_pairs, turning_share
from ropectl.rope.registry import method_from_native, parse_method
from tests.rope.test_contract import NAMES, example
from tests.tolerances import EXACT, PARITY

#: rotary_dim, base, L, pairs that turn: Gemma 4, LFM 3, and two whose slow pairs never complete a turn.
GEOMETRIES = [
    RopeGeometry(512, 1e6, 131_072, 64),
    RopeGeometry(128, 1e6, 128_000, 32),
    RopeGeometry(128, 1e4, 2048, 56),
    RopeGeometry(64, 5e5, 4096, 31),
]
SLOW = GEOMETRIES[2]
FULL = RopeGeometry(128, 1e4, 2048)


def theirs(geometry: RopeGeometry, block: dict[str, Any], max_positions: int) -> tuple[list[float], float]:
    """The table that transformers computes from a block."""
    dim = geometry.rotary_dim
    config = LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        head_dim=dim,
        max_position_embeddings=max_positions,
        rope_parameters=block,
    )
    inv_freq, factor = ROPE_INIT_FUNCTIONS[block["rope_type"]](config, torch.device("cpu"))
    return inv_freq.tolist(), factor


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_trained_table_is_that_of_transformers(geometry: RopeGeometry) -> None:
    share = 2 * geometry.turning_pairs / geometry.rotary_dim
    block = {"rope_type": "proportional", "rope_theta": geometry.rope_theta, "partial_rotary_factor": share}
    table, _ = theirs(geometry, block, 4096)
    assert trained_inv_freq(geometry) == pytest.approx(table, rel=PARITY, abs=0.0)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_config_computes_the_method(name: str, geometry: RopeGeometry) -> None:
    """Every method, frozen where it follows the length; pairs that stand still do so to 1e-30 radians a token."""
    method = example(name, 4.0, geometry)
    seq_len = 3 * geometry.original_max_position_embeddings if method.depends_on_seq_len else None
    patch = method.config_patch(geometry, seq_len)
    expected = method.frequencies(geometry, seq_len)
    table, factor = theirs(geometry, patch.rope_parameters, patch.max_position_embeddings)
    assert table == pytest.approx(expected.inv_freq, rel=PARITY, abs=1e-29)
    assert factor == pytest.approx(expected.attention_factor, rel=PARITY)
    wanted = "proportional" if name in ("none", "pi", "ntk", "abf", "dynamic-ntk") else "longrope"
    assert patch.rope_parameters["rope_type"] == wanted


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seq_len", [None, 100, 1_000_000])
def test_what_stands_still_stays_so(name: str, seq_len: int | None, geometry: RopeGeometry) -> None:
    frequencies = example(name, 4.0, geometry).frequencies(geometry, seq_len)
    turning = geometry.turning_pairs
    assert all(value > 0 for value in frequencies.inv_freq[:turning])
    assert set(frequencies.inv_freq[turning:]) == {0.0} and len(frequencies.inv_freq) == geometry.num_pairs
    slowed = divisors(geometry, frequencies)
    assert set(slowed[turning:]) == {1.0} and all(1.0 - EXACT <= f < math.inf for f in slowed)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("ntk", "dynamic-ntk", "longrope")])
def test_turning_pairs_are_scaled_as_if_all_turned(name: str) -> None:
    """Only NTK-aware scaling looks at which pair is the slowest; longrope's lists are made for the number of pairs."""
    method = example(name, 4.0, SLOW)
    ours, whole = method.frequencies(SLOW, 8192), method.frequencies(FULL, 8192)
    assert ours.inv_freq[: SLOW.turning_pairs] == whole.inv_freq[: SLOW.turning_pairs]
    assert ours.attention_factor == whole.attention_factor


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_ntk_slows_the_slowest_turning_pair_by_the_factor(geometry: RopeGeometry) -> None:
    """The divisor of pair i is s^(i/(k-1)), whatever the base and the width."""
    slowed = divisors(geometry, parse_method("ntk:factor=8").frequencies(geometry))
    last = geometry.turning_pairs - 1
    assert slowed[: last + 1] == pytest.approx([8 ** (i / last) for i in range(last + 1)], rel=1e-9)
    with pytest.raises(MethodError, match="at least 2 pairs that turn"):
        parse_method("ntk:factor=8").frequencies(RopeGeometry(64, 1e4, 512, 1))


def test_reach_looks_at_pairs_that_turn_only() -> None:
    none, pi = parse_method("none"), parse_method("pi:factor=4")
    fast = RopeGeometry(512, 1e6, 131_072, 64)
    assert critical_dimension(fast) == 64, "every pair that turns completed a turn: none is critical"
    assert reach(fast, none.frequencies(fast)) == math.inf
    assert critical_dimension(SLOW) == critical_dimension(FULL) < SLOW.turning_pairs
    assert reach(SLOW, pi.frequencies(SLOW)) == pytest.approx(4 * 2048)
    assert wavelengths(trained_inv_freq(SLOW))[SLOW.turning_pairs :] == (math.inf,) * 8


def test_shares_are_read_as_they_were_written() -> None:
    """int() of a product of floats loses a pair for some shares; the one that is written never does."""
    for dim in (6, 44, 48, 52, 80, 96, 112, 128, 192, 256, 512):
        for turning in range(1, dim // 2):
            geometry = RopeGeometry(dim, 1e6, 4096, turning)
            assert turning_pairs({SHARE: turning_share(geometry)}, dim) == turning
    assert turning_share(GEOMETRIES[0]) == 0.25


@pytest.mark.parametrize("spec", ["none", "pi:factor=4", "abf:rope_theta=5000000"])
def test_blocks_are_read_back(spec: str) -> None:
    method = parse_method(spec)
    block = method.config_patch(SLOW).rope_parameters
    assert method_from_native(block, SLOW) == method


def test_a_geometry_says_how_many_pairs_turn_only_where_not_all_do() -> None:
    three = "rotary_dim=128,rope_theta=10000,original_max_position_embeddings=2048"
    assert RopeGeometry.parse(three) == FULL and RopeGeometry.parse(f"{three},num_turning=56") == SLOW
    assert list(FULL.to_json()) == ["rotary_dim", "rope_theta", "original_max_position_embeddings"]
    assert RopeGeometry(**json.loads(json.dumps(SLOW.to_json()))) == SLOW and SLOW.to_json()["num_turning"] == 56
    assert to_json(inspect_rope(SLOW, parse_method("none")))["geometry"] == SLOW.to_json()
    for impossible in (0, 64, 65, -1):
        with pytest.raises(ConfigError, match=f"num_turning = {impossible} is not possible"):
            RopeGeometry(128, 1e4, 2048, impossible)
