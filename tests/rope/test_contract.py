"""What holds for every registered method, whatever it computes."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropectl.errors import MethodError
from ropectl.rope.catalog import describe_method
from ropectl.rope.frequencies import trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import all_methods, parse_method
from tests.tolerances import EXACT

GEOMETRY = RopeGeometry(rotary_dim=16, rope_theta=10_000.0, original_max_position_embeddings=512)
NAMES = list(all_methods())


def example(name: str, factor: float, geometry: RopeGeometry = GEOMETRY) -> ScalingMethod:
    """The method at an extension factor, with lists where it needs them."""
    kind = all_methods()[name]
    parameters = kind.fill_factor({}, factor, geometry)
    if "long_factor" in kind.model_fields:
        pairs = geometry.num_pairs
        parameters["long_factor"] = [1 + (factor - 1) * i / max(1, pairs - 1) for i in range(pairs)]
    return kind.create(parameters)


@pytest.mark.parametrize("name", NAMES)
def test_is_described(name: str) -> None:
    entry = describe_method(all_methods()[name])
    assert entry["name"] == name
    assert entry["summary"] and entry["title"] and entry["formula"] and entry["reference"] and entry["native"]
    assert all(parameter["help"] for parameter in entry["parameters"])


@pytest.mark.parametrize("name", NAMES)
def test_spec_makes_the_same_method_again(name: str) -> None:
    method = example(name, 2.5)
    again = parse_method(str(method))
    assert again == method and hash(again) == hash(method) and str(again) == str(method)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("theta", [10_000.0, 1e6])
def test_factor_one_is_the_trained_table(name: str, theta: float) -> None:
    """The base is the model's own, never a constant."""
    geometry = RopeGeometry(16, theta, 512)
    actual = example(name, 1.0, geometry).frequencies(geometry)
    assert actual.inv_freq == pytest.approx(trained_inv_freq(geometry), rel=1e-6)  # abf rounds its base
    assert actual.attention_factor == 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seq_len", [None, 1, 511, 512, 513, 2048, 100_000])
def test_frequencies_are_finite_positive_and_ordered(name: str, seq_len: int | None) -> None:
    actual = example(name, 4.0).frequencies(GEOMETRY, seq_len)
    assert len(actual.inv_freq) == GEOMETRY.num_pairs
    assert all(math.isfinite(value) and value > 0 for value in actual.inv_freq)
    assert list(actual.inv_freq) == sorted(actual.inv_freq, reverse=True)
    assert math.isfinite(actual.attention_factor) and actual.attention_factor > 0


@pytest.mark.parametrize("name", [name for name in NAMES if name != "pi"])
def test_leaves_the_fastest_pair_alone(name: str) -> None:
    """Only linear interpolation slows every pair."""
    for seq_len in (None, 100, 4096):
        assert example(name, 4.0).frequencies(GEOMETRY, seq_len).inv_freq[0] == 1.0


def test_linear_interpolation_slows_every_pair() -> None:
    actual = example("pi", 4.0).frequencies(GEOMETRY).inv_freq
    assert actual == pytest.approx([value / 4 for value in trained_inv_freq(GEOMETRY)], rel=EXACT)


@pytest.mark.parametrize("name", NAMES)
def test_length_matters_exactly_where_it_is_declared(name: str) -> None:
    method = example(name, 4.0)
    if name == "longrope":
        method = parse_method(f"{method},short_factor={':'.join(['1'] * GEOMETRY.num_pairs)}")
    tables = {method.frequencies(GEOMETRY, seq_len) for seq_len in (256, 512, 1024, 2048)}
    assert (len(tables) > 1) == method.depends_on_seq_len


@pytest.mark.parametrize("name", ["dynamic-ntk", "dynamic-yarn"])
def test_dynamic_methods_are_the_trained_model_up_to_its_length(name: str) -> None:
    method = example(name, 4.0)
    for seq_len in (1, 511, 512):
        assert method.frequencies(GEOMETRY, seq_len) == example("none", 1.0).frequencies(GEOMETRY)


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


def numeric_parameters() -> list[tuple[str, str]]:
    """Every parameter of every method that is a number or a list of numbers."""
    kinds = all_methods().items()
    return [
        (name, field)
        for name, kind in kinds
        for field, info in kind.model_fields.items()
        if info.annotation is not bool
    ]


@pytest.mark.parametrize(("name", "parameter"), numeric_parameters(), ids="-".join)
@pytest.mark.parametrize("value", ["-2", "0", "nan", "inf", "x"])
def test_impossible_numbers_are_refused_by_name(name: str, parameter: str, value: str) -> None:
    """Naming the parameter and what is wrong with it."""
    kind = all_methods()[name]
    needed = example(name, 4.0).model_dump(exclude_none=True)
    wrong = [value] * GEOMETRY.num_pairs if parameter.endswith(("long_factor", "short_factor")) else value
    with pytest.raises(MethodError) as caught:
        kind.create({**needed, parameter: wrong})
    assert parameter in caught.value.message and value in caught.value.message


@pytest.mark.parametrize("name", [name for name in NAMES if "factor" in all_methods()[name].model_fields])
def test_factors_below_one_are_refused(name: str) -> None:
    needed = example(name, 4.0).model_dump(exclude_none=True)
    with pytest.raises(MethodError, match=r"factor = 0\.5.*at least 1"):
        all_methods()[name].create({**needed, "factor": 0.5})
