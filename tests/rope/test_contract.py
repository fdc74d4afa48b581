"""What holds for every registered method, whatever it computes."""

from __future__ import annotations

import math
from typing import Any, get_args, get_origin

import pytest

from ropectl.errors import MethodError
from ropectl.rope.catalog import describe_method
from ropectl.rope.frequencies import trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import all_methods, parse_method

GEOMETRY = RopeGeometry(rotary_dim=16, rope_theta=10_000.0, original_max_position_embeddings=512)
NAMES = list(all_methods())


def example(name: str, factor: float, geometry: RopeGeometry = GEOMETRY) -> ScalingMethod:
    """The method at an extension factor, with lists of divisors where it needs them."""
    kind = all_methods()[name]
    parameters = kind.fill_factor({}, factor, geometry)
    for missing in kind.missing(parameters):
        pairs = geometry.num_pairs
        parameters[missing] = [1 + (factor - 1) * i / max(1, pairs - 1) for i in range(pairs)]
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


@pytest.mark.parametrize("name", NAMES)
def test_length_matters_exactly_where_it_is_declared(name: str) -> None:
    method = example(name, 4.0)
    tables = {method.frequencies(GEOMETRY, seq_len) for seq_len in (256, 512, 1024, 2048)}
    assert (len(tables) > 1) == method.depends_on_seq_len


NUMBERS = (float, int)
Parameter = tuple[str, str]


def parameters_of(*types: Any) -> list[Parameter]:
    """The parameters of all methods that are of one of these types, or of it or None."""

    def choices(annotation: Any) -> set[Any]:
        return {annotation} if get_origin(annotation) is tuple else {annotation, *get_args(annotation)}

    return [
        (name, field)
        for name, kind in all_methods().items()
        for field, info in kind.model_fields.items()
        if choices(info.annotation) & set(types)
    ]


def just_outside(parameter: Parameter) -> list[str]:
    """Values that the bounds of a parameter's field exclude."""
    name, field = parameter
    values: list[float] = []
    for bound in all_methods()[name].model_fields[field].metadata:
        values += [getattr(bound, limit) for limit in ("gt", "lt") if hasattr(bound, limit)]
        values += [bound.ge - 1] if hasattr(bound, "ge") else []
        values += [bound.le * 2] if hasattr(bound, "le") else []
    return [f"{value:g}" for value in values]


def refused(parameter: Parameter, given: Any, value: str) -> None:
    """Refused by name, with the value and in words."""
    name, field = parameter
    needed = example(name, 4.0).model_dump(exclude_none=True)
    with pytest.raises(MethodError) as caught:
        all_methods()[name].create({**needed, field: given})
    assert field in caught.value.message and value in caught.value.message


@pytest.mark.parametrize("parameter", parameters_of(*NUMBERS), ids=":".join)
def test_every_number_has_a_lowest_value(parameter: Parameter) -> None:
    """``Field(gt=...)`` or ``Field(ge=...)``, which help, completion and errors tell."""
    name, field = parameter
    bounds = all_methods()[name].model_fields[field].metadata
    assert any(hasattr(bound, "gt") or hasattr(bound, "ge") for bound in bounds)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [(parameter, value) for parameter in parameters_of(*NUMBERS) for value in just_outside(parameter)],
    ids=lambda part: part if isinstance(part, str) else ":".join(part),
)
def test_numbers_outside_their_bounds_are_refused(parameter: Parameter, value: str) -> None:
    refused(parameter, value, value)


@pytest.mark.parametrize("parameter", parameters_of(*NUMBERS, tuple[float, ...]), ids=":".join)
@pytest.mark.parametrize("value", ["nan", "inf", "x"])
def test_what_is_not_a_number_is_refused(parameter: Parameter, value: str) -> None:
    is_list = parameter in parameters_of(tuple[float, ...])
    refused(parameter, [value] * GEOMETRY.num_pairs if is_list else value, value)


@pytest.mark.parametrize("name", [name for name in NAMES if "factor" in all_methods()[name].model_fields])
def test_factors_below_one_are_refused(name: str) -> None:
    needed = example(name, 4.0).model_dump(exclude_none=True)
    with pytest.raises(MethodError, match=r"factor = 0\.5.*at least 1"):
        all_methods()[name].create({**needed, "factor": 0.5})
