"""Closed forms and published anchors, method by method."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropectl.errors import ConfigError, MethodError
from ropectl.rope.frequencies import correction_dim, critical_dimension, reach, reach_tokens, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.methods.abf import critical_base
from ropectl.rope.methods.ntk import ntk_base
from ropectl.rope.methods.yarn import correction_range
from ropectl.rope.notes import method_notes
from ropectl.rope.registry import all_methods, parse_method
from tests.rope.test_contract import example
from tests.tolerances import EXACT

LLAMA1 = RopeGeometry(128, 10_000.0, 2048)
LLAMA2 = RopeGeometry(128, 10_000.0, 4096)
LLAMA3 = RopeGeometry(128, 500_000.0, 8192)
LONG = RopeGeometry(128, 10_000.0, 131_072)
SMALL = RopeGeometry(16, 10_000.0, 512)

#: The methods that the tests of this file know.
OURS = ["none", "abf", "dynamic-ntk", "dynamic-yarn", "llama3", "longrope", "ntk", "ntk-by-parts", "pi", "yarn"]


@pytest.mark.parametrize(("factor", "base"), [(4, 40_889.942), (8, 82_684.623)])
def test_ntk_base(factor: float, base: float) -> None:
    assert ntk_base(LLAMA2, factor) == pytest.approx(base, rel=1e-7)


def test_ntk_divides_the_slowest_pair_by_exactly_the_factor() -> None:
    actual = parse_method("ntk:factor=4").frequencies(LLAMA2).inv_freq
    assert actual[-1] == pytest.approx(trained_inv_freq(LLAMA2)[-1] / 4, rel=EXACT)


def test_dynamic_ntk_follows_the_length() -> None:
    """Three lengths, three tables; the first is the trained one."""
    method = parse_method("dynamic-ntk:inner_factor=2")
    exponent = 128 / 126
    for length, inner in ((4096, 1.0), (6144, 2.0), (8192, 3.0)):
        base = 10_000.0 * inner**exponent
        expected = [base ** (-2 * i / 128) for i in range(64)]
        assert method.frequencies(LLAMA2, length).inv_freq == pytest.approx(expected, rel=EXACT)
    assert 10_000.0 * 3**exponent == pytest.approx(30_527.737, rel=1e-7)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1, 1.0), (2, 1.069315), (4, 1.138629), (8, 1.207944), (16, 1.277259), (32, 1.346574), (64, 1.415888)],
)
def test_yarn_attention_factor(factor: float, expected: float) -> None:
    assert parse_method(f"yarn:factor={factor}").frequencies(LLAMA2).attention_factor == pytest.approx(
        expected, abs=1e-6
    )


def test_explicit_attention_factor_is_final() -> None:
    assert parse_method("yarn:factor=64,attention_factor=1").frequencies(LLAMA2).attention_factor == 1.0
    assert parse_method("ntk-by-parts:factor=64").frequencies(LLAMA2).attention_factor == 1.0


def test_mscales_act_as_a_ratio() -> None:
    actual = parse_method("yarn:factor=40,mscale=0.707,mscale_all_dim=1").frequencies(LLAMA2).attention_factor
    expected = (0.1 * 0.707 * math.log(40) + 1) / (0.1 * math.log(40) + 1)
    assert actual == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize(
    ("geometry", "low", "high"), [(LLAMA2, 20.944, 45.027), (LLAMA3, 18.081, 34.984), (LONG, 45.027, 69.109)]
)
def test_raw_correction_range(geometry: RopeGeometry, low: float, high: float) -> None:
    assert correction_dim(32, geometry) == pytest.approx(low, abs=5e-4)
    assert correction_dim(1, geometry) == pytest.approx(high, abs=5e-4)


def test_correction_range_is_rounded_outwards_unless_told_otherwise() -> None:
    assert correction_range(LLAMA2, 32, 1, truncate=True) == (20, 46)
    assert correction_range(LLAMA2, 32, 1, truncate=False) == pytest.approx((20.944, 45.027), abs=5e-4)


def test_ramp_runs_past_the_last_pair() -> None:
    """The upper clamp is d - 1 = 127; the ramp ends at 70, so the last pair is only partly interpolated."""
    assert correction_range(LONG, 32, 1, truncate=True) == (45, 70)
    last = parse_method("yarn:factor=4").frequencies(LONG).inv_freq[-1]
    keep = 1 - (63 - 45) / (70 - 45)
    assert last == pytest.approx(trained_inv_freq(LONG)[-1] * ((1 - keep) / 4 + keep), rel=EXACT)


def test_mid_ramp_entry_is_the_arithmetic_mix_of_frequencies() -> None:
    geometry = RopeGeometry(16, 10_000.0, 512)
    actual = parse_method("yarn:factor=4,truncate=false").frequencies(geometry).inv_freq
    low = 16 * math.log(512 / (64 * math.pi)) / (2 * math.log(10_000))
    high = 16 * math.log(512 / (2 * math.pi)) / (2 * math.log(10_000))
    for pair in (1, 2, 3):
        share = (pair - low) / (high - low)
        trained = 10_000 ** (-2 * pair / 16)
        assert actual[pair] == pytest.approx(share * trained / 4 + (1 - share) * trained, rel=EXACT)


def test_paper_ramp_is_linear_in_rotations() -> None:
    actual = parse_method("ntk-by-parts:factor=8").frequencies(LLAMA2).inv_freq
    for pair, trained in enumerate(trained_inv_freq(LLAMA2)):
        turns = 4096 * trained / (2 * math.pi)
        keep = min(1.0, max(0.0, (turns - 1) / 31))
        assert actual[pair] == pytest.approx((1 - keep) * trained / 8 + keep * trained, rel=EXACT)


def test_both_ramps_differ_by_the_known_amount() -> None:
    """At pair 36 of LLaMA-2 with s = 8, by 57 % (the larger over the smaller, less one, either way)."""
    paper = parse_method("ntk-by-parts:factor=8").frequencies(LLAMA2).inv_freq[36]
    runtime = parse_method("yarn:factor=8,attention_factor=1").frequencies(LLAMA2).inv_freq[36]
    assert abs(paper - runtime) / max(paper, runtime) == pytest.approx(0.57, abs=0.01)


@pytest.mark.parametrize(("scale", "expected"), [(8, 1.118034), (32, 1.190238)])
def test_longrope_attention_factor(scale: int, expected: float) -> None:
    ones = ":".join(["1"] * 64)
    actual = parse_method(f"longrope:factor={scale},long_factor={ones}").frequencies(LLAMA2).attention_factor
    assert actual == pytest.approx(expected, abs=1e-6)


def test_longrope_switches_past_the_trained_length() -> None:
    """The boundary: L itself is short."""
    ones, twos = ":".join(["1"] * 64), ":".join(["2"] * 64)
    method = parse_method(f"longrope:factor=2,long_factor={twos},short_factor={ones}")
    assert [method.frequencies(LLAMA2, n).inv_freq[0] for n in (4095, 4096, 4097)] == [1.0, 1.0, 0.5]


def test_longrope_list_must_fit_the_geometry() -> None:
    with pytest.raises(MethodError, match="has 3 values, but this model rotates 64 pairs"):
        parse_method("longrope:factor=2,long_factor=1:2:3").frequencies(LLAMA2)


@pytest.mark.parametrize("length", [8192, 16_384, 131_072])
def test_critical_base_lets_the_critical_pair_turn_once_in_the_target(length: int) -> None:
    base = critical_base(LLAMA2, length)
    pair = correction_dim(1.0, LLAMA2)
    assert 2 * math.pi * base ** (2 * pair / 128) == pytest.approx(length, rel=EXACT)


def test_abf_fills_its_base_from_a_factor() -> None:
    method = parse_method("abf", 4.0, LLAMA2)
    assert float(str(method).partition("=")[2]) == pytest.approx(critical_base(LLAMA2, 16_384), abs=0.05)
    assert parse_method("abf:rope_theta=1e6", 4.0, LLAMA2) == parse_method("abf:rope_theta=1e6")
    assert reach_tokens(LLAMA2, method.frequencies(LLAMA2)) >= 16_384


def test_reach_of_the_static_methods() -> None:
    unscaled, interpolated, ntk = (parse_method(s).frequencies(LLAMA1) for s in ("none", "pi:factor=4", "ntk:factor=4"))
    assert reach_tokens(LLAMA1, unscaled) == 2048
    assert reach_tokens(LLAMA1, interpolated) == 8192
    first_critical = critical_dimension(LLAMA1)
    assert reach(LLAMA1, ntk) == pytest.approx(2048 * 4 ** (2 * first_critical / 126), rel=1e-8)
    assert reach_tokens(LLAMA1, parse_method("yarn:factor=4").frequencies(LLAMA1)) == 8192


def test_reach_is_unlimited_where_every_pair_completed_a_turn() -> None:
    geometry = RopeGeometry(16, 100.0, 131_072)
    assert reach_tokens(geometry, parse_method("none").frequencies(geometry)) is None


def test_ntk_says_where_its_cliff_is() -> None:
    """Asked for 8192 from 2048, the usable length is shorter, and that is said."""
    method = parse_method("ntk", 4.0, LLAMA1)
    assert ntk_base(LLAMA1, 4.0) == pytest.approx(10_000 * 4 ** (128 / 126), rel=EXACT)
    notes = method_notes(method, LLAMA1)
    assert len(notes) == 1 and "5048" in notes[0] and "8192" in notes[0]
    assert method_notes(parse_method("yarn:factor=4"), LLAMA1) == []


def test_factor_one_is_a_no_op_with_a_notice() -> None:
    assert "extends nothing" in method_notes(parse_method("pi:factor=1"), LLAMA1)[0]


def test_equal_betas_are_a_step() -> None:
    """Kimi K2: the ramp begins at 64 ln(4096/2pi) / (2 ln 50000) = 19.165, so from pair 19 to pair 20; its A is 1."""
    geometry = RopeGeometry(64, 50_000.0, 4096)
    bounds = "factor=32,beta_fast=1,beta_slow=1"
    assert correction_dim(1.0, geometry) == pytest.approx(19.165, abs=5e-4)
    for spec in (f"yarn:{bounds},mscale=1,mscale_all_dim=1", f"ntk-by-parts:{bounds}"):
        found = parse_method(spec).frequencies(geometry)
        pairs = zip(trained_inv_freq(geometry), found.inv_freq, strict=True)
        assert [trained / scaled for trained, scaled in pairs] == pytest.approx([1] * 20 + [32] * 12, rel=EXACT)
        assert found.attention_factor == 1
    at_end = parse_method("dynamic-yarn:beta_fast=1,beta_slow=1").frequencies(geometry, 32 * 4096)
    assert at_end.inv_freq == parse_method(f"yarn:{bounds}").frequencies(geometry).inv_freq


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("yarm", ["yarm", "yarn"]),
        ("yarn", ["factor", "--factor"]),
        ("yarn:factor", ["KEY=VALUE"]),
        ("yarn:factor=4,factor=8", ["twice"]),
        ("yarn:factr=4", ["factr", "factor"]),
        ("yarn:factor=4,beta_fast=1,beta_slow=32", ["beta_fast", "1", "beta_slow", "32"]),
        ("ntk-by-parts:factor=4,beta_fast=1,beta_slow=32", ["must not be less than"]),
        ("dynamic-yarn:beta_fast=1,beta_slow=32", ["must not be less than"]),
        ("llama3:factor=4,low_freq_factor=5", ["high_freq_factor", "low_freq_factor"]),
        ("yarn:factor=4,mscale=1", ["mscale_all_dim", "together"]),
        ("longrope:factor=4,long_factor=1:-2", ["long_factor", "-2"]),
        ("longrope:factor=4,long_factor=@/nowhere.json", ["/nowhere.json"]),
        ("dynamic-ntk:factor=4", ["no parameter", "inner_factor"]),
    ],
)
def test_bad_specs_say_what_to_type(spec: str, words: list[str]) -> None:
    with pytest.raises(MethodError) as caught:
        parse_method(spec)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_contradicting_factors_are_refused() -> None:
    with pytest.raises(MethodError, match="factor=8"):
        parse_method("yarn:factor=8", 4.0, LLAMA2)
    assert parse_method("yarn:factor=4", 4.0, LLAMA2) == parse_method("yarn:factor=4")
    rounded = round(3.3 * 4096) / 4096
    assert str(parse_method("yarn:factor=3.3", rounded, LLAMA2)) == "yarn:factor=3.3", "the same number of tokens"
    with pytest.raises(MethodError, match="factor = x"):
        parse_method("yarn:factor=x", 4.0, LLAMA2)


def test_a_factor_leaves_dynamic_methods_alone() -> None:
    assert str(parse_method("dynamic-ntk", 4.0, LLAMA2)) == "dynamic-ntk"
    assert str(parse_method("dynamic-ntk:inner_factor=2", 4.0, LLAMA2)) == "dynamic-ntk:inner_factor=2"


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        ((15, 1e4, 512), "rotary_dim"),
        ((0, 1e4, 512), "rotary_dim"),
        ((16, 1.0, 512), "rope_theta"),
        ((16, math.nan, 512), "rope_theta"),
        ((16, 1e4, 0), "original"),
    ],
)
def test_impossible_geometries_are_refused(numbers: tuple[int, float, int], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        RopeGeometry(*numbers)


@pytest.mark.parametrize("name", [name for name in OURS if name != "pi"])
def test_leaves_the_fastest_pair_alone(name: str) -> None:
    for seq_len in (None, 100, 4096):
        assert example(name, 4.0).frequencies(SMALL, seq_len).inv_freq[0] == 1.0


def test_linear_interpolation_slows_every_pair() -> None:
    actual = parse_method("pi:factor=4").frequencies(SMALL).inv_freq
    assert actual == pytest.approx([value / 4 for value in trained_inv_freq(SMALL)], rel=EXACT)


@pytest.mark.parametrize("name", ["dynamic-ntk", "dynamic-yarn"])
def test_dynamic_methods_are_the_trained_model_up_to_its_length(name: str) -> None:
    method = example(name, 4.0)
    for seq_len in (1, 511, 512):
        assert method.frequencies(SMALL, seq_len) == parse_method("none").frequencies(SMALL)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(["pi", "ntk", "ntk-by-parts", "yarn", "llama3"]),
    half=st.integers(2, 128),
    theta=st.floats(100.0, 1e8),
    length=st.integers(64, 1_000_000),
    factor=st.floats(1.0, 128.0),
)
def test_every_pair_lies_between_trained_and_interpolated(
    name: str, half: int, theta: float, length: int, factor: float
) -> None:
    """Mixes are means of frequencies; the divisor never decreases towards slower pairs."""
    geometry = RopeGeometry(2 * half, theta, length)
    actual = example(name, factor, geometry).frequencies(geometry).inv_freq
    trained = trained_inv_freq(geometry)
    divisors = [t / a for t, a in zip(trained, actual, strict=True)]
    assert all(1 - 1e-9 <= divisor <= factor * (1 + 1e-9) for divisor in divisors)
    assert all(left <= right * (1 + 1e-9) for left, right in itertools.pairwise(divisors))


@pytest.mark.parametrize("name", OURS)
def test_no_number_can_be_zero_or_less(name: str) -> None:
    """Whatever bounds their fields declare: each divides, or counts turns or tokens."""
    kind = all_methods()[name]
    needed = example(name, 4.0, SMALL).model_dump(exclude_none=True)
    for parameter in [field for field, info in kind.model_fields.items() if info.annotation is not bool]:
        for value in ("0", "-2"):
            given = [value] * SMALL.num_pairs if parameter in ("long_factor", "short_factor") else value
            with pytest.raises(MethodError, match=f"{parameter}.*{value}"):
                kind.create({**needed, parameter: given})
