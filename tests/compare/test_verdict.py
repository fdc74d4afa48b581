"""The pick of a comparison, its verdict in sentences, and the limits for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ropectl.compare.verdict import comparison_verdict, pick_method, unmet_gates
from ropectl.records import MethodRow, PasskeyLength, PerplexityPoint, Pick, Reach, TrainingSummary


def row(method: str, reach: Reach, longest: int = 2048, **more: Any) -> MethodRow:
    passkey = [PasskeyLength(longest, 25, 25, 1.0, 0.8, 1.0, 0.0, [])]
    return MethodRow("base", method, [], [], passkey, reach, None, 1.0, **more)


def test_the_pick_is_told_in_every_sense() -> None:
    rows = [row("none", Reach(512, 512, 512)), row("yarn:factor=4", Reach(2048, 0, 2048))]
    [sentence] = comparison_verdict(rows, Pick("base", "yarn:factor=4", []), 2048)
    assert sentence == (
        "Of the 2048 tokens asked for, the pick (yarn:factor=4) computes 2048 (rotations seen in training); models none of "
        "the lengths (loss as low as the unscaled model's); uses 2048 (passkeys retrieved)."
    )


@pytest.mark.parametrize(
    ("longest", "words"), [(2048, "no method uses them all"), (1024, "no method was measured there")]
)
def test_a_target_that_nothing_reaches_is_said(longest: int, words: str) -> None:
    rows = [row("none", Reach(512, 512, 512), longest), row("pi:factor=4", Reach(None, None, 0), longest)]
    first, second = comparison_verdict(rows, Pick("base", "none", []), 2048)
    assert "the pick (none) computes 512" in first and words in second


def test_what_was_not_judged_is_not_judged() -> None:
    training = TrainingSummary("id")
    rows = [row("none", Reach(512)), row("pi:factor=4", Reach(None), training=training)]
    [sentence] = comparison_verdict(rows, Pick("base", "pi:factor=4", [], "id"), 2048)
    assert "(pi:factor=4, tuned) computes 2048" in sentence and sentence.count("not judged") == 2
    assert comparison_verdict(rows, None, 2048) == ["Nothing was measured that could decide between the methods."]


def judged(name: str, uses: int | None, models: int | None, delta: float | None, **more: Any) -> MethodRow:
    return MethodRow("model", name, [], [], [], Reach(512, models, uses), delta, 1.0, **more)


def test_pick_follows_the_rule() -> None:
    rows = [
        judged("a", 1024, 2048, 0.5),
        judged("b", 2048, 512, 0.9),
        judged("c", 2048, 1024, 0.2),
        judged("d", 2048, 1024, 0.1),
    ]
    pick = pick_method(rows, 512)
    assert pick is not None and pick.method == "d" and pick.tied == [] and len(pick.reasons) == 3
    assert "shared with 2 others" in pick.reasons[0]
    assert pick_method([judged("a", None, None, None)], 512) is None
    tuned = pick_method(
        [judged("a", 4096, 4096, 0.1), judged("a", 8192, 4096, 0.2, training=TrainingSummary("id"))], 512
    )
    assert tuned is not None and (tuned.method, tuned.training) == ("a", "id")
    assert pick is not None and pick.training is None
    failed = pick_method([judged("a", 4096, 4096, 0.0, errors=["x"]), judged("b", 512, 512, 0.0)], 512)
    assert failed is not None and failed.method == "b"


def row_json(
    method: str, training: dict[str, str] | None = None, model: str = "base", delta: float = 0.0
) -> dict[str, Any]:
    points = [
        {"context_length": 512, "perplexity": 9.0, "beyond_capacity": False},
        {"context_length": 1024, "perplexity": 12.0, "beyond_capacity": False},
        {"context_length": 2048, "perplexity": 99.0, "beyond_capacity": True},
        {"context_length": 4096, "perplexity": None, "beyond_capacity": False},
    ]
    passkey = [
        {
            "length": length,
            "correct": n,
            "trials": 25,
            "accuracy": n / 25,
            "ci_low": low,
            "ci_high": high,
            "beyond_capacity": b,
        }
        for length, n, low, high, b in (
            (512, 25, 0.87, 1.0, False),
            (1024, 20, 0.61, 0.91, False),
            (2048, 0, 0.0, 0.13, True),
        )
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
    found = unmet_gates(record([row_json("pi:factor=4")], PICK, **limits))
    assert len(found) == expected and all("pi:factor=4" in message for message in found)


@pytest.mark.parametrize(("chosen", "regressed"), [("id", True), (None, False)])
def test_limits_are_held_against_the_picked_row(chosen: str | None, regressed: bool) -> None:
    rows = [
        row_json("pi:factor=4"),
        row_json("pi:factor=4", {"id": "id"}, delta=0.5),
        row_json("pi:factor=4", model="other", delta=0.5),
    ]
    pick = {**PICK, "training": chosen}
    assert bool(unmet_gates(record(rows, pick, max_short_regression=0.1))) is regressed


def test_no_pick_keeps_no_limit() -> None:
    assert unmet_gates(record([row_json("none")], None, fail_above=100.0)) and not unmet_gates(
        record([row_json("none")], None)
    )


def test_the_pick_of_another_model_is_told_from_the_first_ones() -> None:
    """Both may be measured under the same method: the pick is then named with its model."""
    pick = Pick("tuned", "none", [])
    rows = [MethodRow(model, "none", [], [], [], Reach(512, models=512), None, 0.0) for model in ("base", "tuned")]
    (sentence,) = comparison_verdict(rows, pick, 512)
    assert "tuned, none) computes" in sentence
    assert "(none) computes" in comparison_verdict(rows, Pick("base", "none", []), 512)[0]
    other = record(
        [row_json("none"), row_json("none", model="tuned")], {"model": "tuned", "method": "none", "training": None}
    )
    other["manifest"]["config"]["fail_above"] = 11.0
    assert "The pick none of tuned has perplexity 12 " in unmet_gates(other)[0]


def test_a_pick_that_ends_before_the_target_keeps_no_limit_there() -> None:
    """What no method reaches is not passed over: a script must not take it for a success."""
    found = unmet_gates(record([row_json("pi:factor=4")], PICK, target_length=2048, min_accuracy=0.5, fail_above=50.0))
    assert len(found) == 2 and all("2048" in message for message in found)


def test_a_price_that_was_not_judged_keeps_no_limit() -> None:
    unjudged = {**row_json("pi:factor=4"), "short_delta": None}
    assert len(unmet_gates(record([unjudged], PICK, max_short_regression=0.1))) == 1
    assert not unmet_gates(record([unjudged], PICK, min_accuracy=0.1))


def test_a_limit_that_chance_may_have_missed_is_said_so() -> None:
    """20 of 25 are below 0.9 and may be 0.9; none of 25 is not."""
    unsure, sure = unmet_gates(record([row_json("pi:factor=4")], PICK, target_length=2048, min_accuracy=0.9))
    assert "20 of 25" in unsure and unsure.endswith("(not resolved: 95 % interval 61% to 91%).")
    assert "0 of 25" in sure and "not resolved" not in sure


def test_the_pick_s_price_is_said_of_the_lengths_that_were_measured() -> None:
    def measured(name: str, *values: float | None) -> MethodRow:
        points = [PerplexityPoint(length, value) for length, value in zip((256, 512, 8192), values, strict=True)]
        return MethodRow("model", name, points, [], [], Reach(512, 512, 512), 0.0 if name == "none" else 0.1, 1.0)

    rows = [measured("none", 9.0, 8.0, None), measured("a", 9.9, 8.1, 5.0)]
    pick = pick_method(rows, 8192)
    assert pick is not None and pick.method == "none"
    assert pick.reasons[-1] == "perplexity at 256 and 512 tokens does not change"
    found = pick_method([rows[0], replace(rows[1], reach=Reach(512, 1024, 1024))], 8192)
    assert found is not None and found.reasons[-1] == "perplexity at 256 and 512 tokens rises by 10.0% at worst"
