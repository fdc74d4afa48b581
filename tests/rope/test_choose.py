"""The choice by its rule, on every geometry of the golden files: valid specs, and what the rule says of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ropectl.rope.choose import MAX_PICKS, choose, weigh
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import all_methods, parse_method
from ropectl.rope.tuning import Tuning

GOLDEN = Path(__file__).parent.parent / "golden"
LLAMA2 = RopeGeometry(rotary_dim=128, rope_theta=10_000.0, original_max_position_embeddings=4096)


def geometries() -> list[RopeGeometry]:
    rows: list[dict[str, Any]] = [row for path in GOLDEN.glob("*.json") for row in json.loads(path.read_text())]
    found = {RopeGeometry(**row["geometry"]) for row in rows}
    return sorted(found, key=lambda geometry: tuple(geometry.to_json().values()))


@pytest.mark.parametrize("tuning", list(Tuning))
@pytest.mark.parametrize("factor", [1.5, 4, 64])
@pytest.mark.parametrize("geometry", geometries(), ids=lambda geometry: str(tuple(geometry.to_json().values())))
def test_picks_apply(geometry: RopeGeometry, factor: float, tuning: Tuning) -> None:
    target = geometry.target_length(factor)
    choice = choose(geometry, target, tuning)
    assert 2 <= len(choice.picks) <= MAX_PICKS
    for pick in choice.picks:
        method = parse_method(str(pick.method))
        frequencies = method.frequencies(geometry, target)
        assert len(frequencies.inv_freq) == geometry.num_pairs and all(map(math.isfinite, frequencies.inv_freq))
        assert method.config_patch(geometry, target if method.depends_on_seq_len else None)
        assert tuning is not Tuning.none or pick.reaches(target)
        assert tuning is Tuning.full or pick.crowding == pytest.approx(1)
        assert tuning is Tuning.none or not method.depends_on_seq_len
    names = [pick.method.name for pick in choice.picks] + [passed.name for passed in choice.passed]
    assert sorted([*names, "none"]) == sorted(all_methods())
    static = [pick.shift for pick in choice.picks if not pick.method.depends_on_seq_len and pick.crowding < 1.01]
    assert static == sorted(static)


def test_shift_and_crowding_in_closed_form() -> None:
    """Interpolation divides every frequency by s; the dynamic form nothing up to L."""
    pi = weigh(parse_method("pi:factor=4"), LLAMA2, 16384)
    assert (pi.crowding, pi.shift, pi.computes) == pytest.approx((4.0, math.log(4.0), 16384))
    assert pi.slowing == pytest.approx(4.0)
    dynamic = weigh(parse_method("dynamic-yarn"), LLAMA2, 16384)
    assert (dynamic.crowding, dynamic.shift, dynamic.computes) == (1.0, pytest.approx(0.0), 16384)


def test_ntk_is_short_of_its_target_untuned_and_comes_last_tuned() -> None:
    """Its reach is s^((d - 2)/d ...) of L, 11270 of 16384 tokens here."""
    untuned = choose(LLAMA2, 16384, Tuning.none)
    reason = next(passed.reason for passed in untuned.passed if passed.name == "ntk")
    assert "11270 of the 16384" in reason
    tuned = choose(LLAMA2, 16384, Tuning.light, lambda method: None if method.name in ("ntk", "yarn") else "not here")
    assert [pick.method.name for pick in tuned.picks] == ["yarn", "ntk"]


def test_obstacles_are_reasons() -> None:
    choice = choose(LLAMA2, 16384, Tuning.none, lambda method: f"no {method.name} here.")
    assert choice.picks == ()
    assert {passed.reason for passed in choice.passed if passed.name == "pi"} == {"no pi here."}


def test_what_refuses_the_geometry_is_passed_over() -> None:
    """NTK-aware scaling needs two pairs, a critical base a trained length of a turn."""
    choice = choose(RopeGeometry(rotary_dim=2, rope_theta=10_000.0, original_max_position_embeddings=4), 16)
    reasons = {passed.name: passed.reason for passed in choice.passed}
    assert "rotary_dim of at least 4" in reasons["ntk"] and "critical base" in reasons["abf"]


def test_partly_turning_pairs() -> None:
    geometry = RopeGeometry(rotary_dim=64, rope_theta=1e6, original_max_position_embeddings=4096, num_turning=8)
    choice = choose(geometry, 16384)
    assert choice.picks and all(pick.shift >= 0 for pick in choice.picks)
