"""Typing slips in specs, geometries and lists of lengths: refused, with the same thing typed well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.errors import ConfigError, MethodError
from ropectl.lengths import parse_lengths
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_spec
from ropectl.specs import split_pairs
from ropectl.tasks.registry import parse_task

GEOMETRY = "rotary_dim=64,rope_theta=1e4,original_max_position_embeddings=128"


def lengths(text: str) -> list[int]:
    return parse_lengths([text])


EMPTY = [
    (parse_spec, "yarn:factor=4,,beta_fast=16", "Type: yarn:factor=4,beta_fast=16"),
    (parse_spec, "yarn:factor=4,", "Type: yarn:factor=4"),
    (parse_spec, "yarn:,factor=4", "Type: yarn:factor=4"),
    (parse_spec, "yarn: , factor=4", "Type: yarn:factor=4"),
    (parse_spec, "yarn:", "Type: yarn"),
    (parse_task, "needle:digits=5,,", "Type: needle:digits=5"),
    (parse_task, "passkey:", "Type: passkey"),
    (RopeGeometry.parse, GEOMETRY + ",", f"Type: {GEOMETRY}"),
    (RopeGeometry.parse, GEOMETRY.replace(",", ",,"), f"Type: {GEOMETRY}"),
    (lengths, "4k,,8k", "Type: --length 4k,8k"),
    (lengths, "4k,", "Type: --length 4k"),
    (lengths, ",1k..4k", "Type: --length 1k..4k"),
]


@pytest.mark.parametrize(("parse", "text", "cure"), EMPTY, ids=[text for _, text, _ in EMPTY])
def test_an_empty_part(parse: Callable[[str], Any], text: str, cure: str) -> None:
    with pytest.raises(ConfigError, match="empty part") as caught:
        parse(text)
    assert caught.value.hint == cure
    typed = cure.removeprefix("Type: ").removeprefix("--length ")
    parse(typed)


@pytest.mark.parametrize(
    ("parse", "text", "cure"),
    [
        (parse_spec, "yarn:factor=4\n,beta_fast=16", "Type: yarn:factor=4,beta_fast=16"),
        (parse_spec, "ya\x1brn", "Type: yarn"),
        (parse_spec, "yarn:factor\u202e=4", "Type: yarn:factor=4"),
        (parse_task, "needle:\tdigits=5", "Type: needle:digits=5"),
        (RopeGeometry.parse, GEOMETRY.replace(",", ",\r\n"), f"Type: {GEOMETRY}"),
    ],
    ids=["line break in a method", "escape", "direction", "tab in a task", "line break in numbers"],
)
def test_a_control_character(parse: Callable[[str], Any], text: str, cure: str) -> None:
    with pytest.raises(ConfigError, match="control character") as caught:
        parse(text)
    assert caught.value.hint == cure and "\n" not in caught.value.message
    parse(cure.removeprefix("Type: "))


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (parse_spec, "yarn:factor=", "'factor=' in the scaling method spec 'yarn:factor=' is not KEY=VALUE"),
        (parse_spec, "yarn:=4", "'=4' in the scaling method spec"),
        (parse_spec, "yarn:factor", "'factor' in the scaling method spec"),
        (parse_spec, "yarn:factor=4,factor=4", "factor is given twice in the scaling method spec"),
        (parse_task, "needle:digits", "'digits' in the task spec"),
        (RopeGeometry.parse, "rotary_dim,rope_theta=1e4", "'rotary_dim' in geometry is not KEY=VALUE"),
        (RopeGeometry.parse, GEOMETRY + ",rotary_dim=32", "rotary_dim is given twice in geometry"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_pair_and_a_pair_twice(parse: Callable[[str], Any], text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert said in caught.value.message and caught.value.hint


def test_a_message_quotes_a_line_at_most() -> None:
    with pytest.raises(MethodError) as caught:
        parse_spec("longrope:long_factor=" + ":".join(["1.25"] * 4000) + ",,factor=4")
    assert len(str(caught.value)) < 300


WORDS = st.text("abcdefghijklmnopqrstuvwxyz_-0123456789.", min_size=1, max_size=8)


@given(WORDS, st.dictionaries(WORDS, WORDS, min_size=1, max_size=4), st.integers(0, 5))
def test_a_comma_too_many_anywhere(name: str, parameters: dict[str, str], place: int) -> None:
    """Whatever the spec, the cure is the spec without it."""
    pairs = [f"{key}={value}" for key, value in parameters.items()]
    well = f"{name}:{','.join(pairs)}"
    assert split_pairs(",".join(pairs), "it", "x", before=f"{name}:") == parameters
    pairs.insert(place % (len(pairs) + 1), "")
    with pytest.raises(ConfigError) as caught:
        split_pairs(",".join(pairs), "it", "x", before=f"{name}:")
    assert caught.value.hint in (f"Type: {well}", f"Type: {well[:77]}...")
