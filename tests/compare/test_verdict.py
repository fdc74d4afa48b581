"""The pick of a comparison, and what it comes to in sentences."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.compare.verdict import comparison_verdict, pick_method
from ropectl.records import MethodRow, PasskeyLength, Pick, Reach, TrainingSummary


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
    pick = pick_method(rows)
    assert pick is not None and pick.method == "d" and len(pick.reasons) == 3
    assert "shared with 2 others" in pick.reasons[0]
    assert pick_method([judged("a", None, None, None)]) is None
    tuned = pick_method([judged("a", 4096, 4096, 0.1), judged("a", 8192, 4096, 0.2, training=TrainingSummary("id"))])
    assert tuned is not None and (tuned.method, tuned.training) == ("a", "id")
    assert pick is not None and pick.training is None
    failed = pick_method([judged("a", 4096, 4096, 0.0, errors=["x"]), judged("b", 512, 512, 0.0)])
    assert failed is not None and failed.method == "b"
