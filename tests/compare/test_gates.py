"""Limits for the pick of a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.compare.verdict import comparison_verdict, unmet_gates
from ropectl.records import MethodRow, Pick, Reach


def row(method: str, training: dict[str, str] | None = None, model: str = "base", delta: float = 0.0) -> dict[str, Any]:
    points = [
        {"context_length": 512, "perplexity": 9.0, "beyond_capacity": False},
        {"context_length": 1024, "perplexity": 12.0, "beyond_capacity": False},
        {"context_length": 2048, "perplexity": 99.0, "beyond_capacity": True},
        {"context_length": 4096, "perplexity": None, "beyond_capacity": False},
    ]
    passkey = [
        {"length": 512, "correct": 25, "trials": 25, "accuracy": 1.0, "beyond_capacity": False},
        {"length": 1024, "correct": 20, "trials": 25, "accuracy": 0.8, "beyond_capacity": False},
        {"length": 2048, "correct": 0, "trials": 25, "accuracy": 0.0, "beyond_capacity": True},
    ]
    return {
        "model": model,
        "method": method,
        "training": training,
        "short_delta": delta,
        "perplexity": points,
        "passkey": passkey,
    }


def record(
    rows: list[dict[str, Any]], pick: dict[str, Any] | None, target_length: int = 1024, **limits: float
) -> dict[str, Any]:
    config = {"fail_above": None, "min_accuracy": None, "max_short_regression": None, **limits}
    return {"manifest": {"config": config}, "rows": rows, "pick": pick, "target_length": target_length}


PICK = {"model": "base", "method": "pi:factor=4", "training": None}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 0),
        ({"fail_above": 12.0}, 0),  # 99 stands past the context that was asked for
        ({"fail_above": 11.9}, 1),
        ({"fail_above": 8.0}, 2),
        ({"min_accuracy": 0.8}, 0),
        ({"min_accuracy": 0.81}, 1),
        ({"max_short_regression": 0.0}, 0),
        ({"fail_above": 8.0, "min_accuracy": 0.9}, 3),
    ],
)
def test_what_passes_a_limit_is_said(limits: dict[str, float], expected: int) -> None:
    found = unmet_gates(record([row("pi:factor=4")], PICK, **limits))
    assert len(found) == expected and all("pi:factor=4" in message for message in found)


@pytest.mark.parametrize(("chosen", "regressed"), [("id", True), (None, False)])
def test_limits_are_held_against_the_picked_row(chosen: str | None, regressed: bool) -> None:
    rows = [
        row("pi:factor=4"),
        row("pi:factor=4", {"id": "id"}, delta=0.5),
        row("pi:factor=4", model="other", delta=0.5),
    ]
    pick = {**PICK, "training": chosen}
    assert bool(unmet_gates(record(rows, pick, max_short_regression=0.1))) is regressed


def test_no_pick_keeps_no_limit() -> None:
    assert unmet_gates(record([row("none")], None, fail_above=100.0)) and not unmet_gates(record([row("none")], None))


def test_the_pick_of_another_model_is_told_from_the_first_ones() -> None:
    """Both may be measured under the same method: the pick is then named with its model."""
    pick = Pick("tuned", "none", [])
    rows = [MethodRow(model, "none", [], [], [], Reach(512, models=512), None, 0.0) for model in ("base", "tuned")]
    (sentence,) = comparison_verdict(rows, pick, 512)
    assert "tuned, none) computes" in sentence
    assert "(none) computes" in comparison_verdict(rows, Pick("base", "none", []), 512)[0]
    other = record([row("none"), row("none", model="tuned")], {"model": "tuned", "method": "none", "training": None})
    other["manifest"]["config"]["fail_above"] = 11.0
    assert "The pick none of tuned has perplexity 12 " in unmet_gates(other)[0]


def test_a_pick_that_ends_before_the_target_keeps_no_limit_there() -> None:
    """What no method reaches is not passed over: a script must not take it for a success."""
    found = unmet_gates(record([row("pi:factor=4")], PICK, target_length=2048, min_accuracy=0.5, fail_above=50.0))
    assert len(found) == 2 and all("2048" in message for message in found)


def test_a_price_that_was_not_judged_keeps_no_limit() -> None:
    unjudged = {**row("pi:factor=4"), "short_delta": None}
    assert len(unmet_gates(record([unjudged], PICK, max_short_regression=0.1))) == 1
    assert not unmet_gates(record([unjudged], PICK, min_accuracy=0.1))
