"""Verdicts and intervals."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ropectl.evaluate.reach import models_length, pick_method, reached, short_delta, uses_length
from ropectl.evaluate.statistics import bootstrap_upper, wilson_interval
from ropectl.records import MethodRow, PasskeyLength, PerplexityPoint, Reach, TrainingSummary


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (24, 25, 0.8046, 0.9929), (0, 0, 0.0, 1.0)],
)
def test_wilson_interval(successes: int, trials: int, low: float, high: float) -> None:
    """Against values tabulated for the score interval."""
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_interval_covers_at_its_rate() -> None:
    rng = random.Random(0)
    covered = 0
    for _ in range(2000):
        low, high = wilson_interval(sum(rng.random() < 0.7 for _ in range(40)), 40)
        covered += low <= 0.7 <= high
    assert 0.93 < covered / 2000 < 0.97


def test_bootstrap_upper_is_above_the_mean_and_seeded() -> None:
    rng = random.Random(1)
    values = [rng.gauss(0.1, 0.05) for _ in range(50)]
    mean = sum(values) / 50
    assert mean < bootstrap_upper(values) < mean + 3 * 0.05 / 50**0.5
    assert bootstrap_upper(values) == bootstrap_upper(values)
    assert bootstrap_upper([0.3]) == pytest.approx(0.3)


def tail(length: int, *sums: float) -> PerplexityPoint:
    return PerplexityPoint(length, 1.0, sum(sums), 100 * len(sums), len(sums), list(sums))


def test_models_is_the_longest_context_that_is_not_worse() -> None:
    baseline = tail(512, *[200.0] * 8)
    points = [tail(256, *[210.0] * 8), tail(512, *[200.0] * 8), tail(1024, *[201.5] * 8), tail(2048, *[203.0] * 8)]
    assert models_length(points, baseline, tolerance=0.02) == 1024
    assert models_length(points, baseline, tolerance=0.05) == 2048
    assert models_length([tail(512, *[250.0] * 8)], baseline, tolerance=0.02) == 0
    assert models_length([], baseline, 0.02) is None and models_length(points, None, 0.02) is None


def test_models_wants_certainty_not_a_lucky_mean() -> None:
    baseline = tail(512, *[200.0] * 8)
    scattered = tail(1024, *[190.0, 210.0] * 4)
    assert models_length([scattered], baseline, tolerance=0.02) == 0


def found(length: int, correct: int, trials: int = 25) -> PasskeyLength:
    return PasskeyLength(length, correct, trials, correct / trials, 0.0, 1.0, -1.0, [])


def test_uses_needs_every_shorter_length_too() -> None:
    assert uses_length([found(256, 25), found(512, 24), found(1024, 10), found(2048, 25)], 0.9) == 512
    assert uses_length([found(512, 24), found(256, 10)], 0.9) == 0
    assert uses_length([], 0.9) is None


def test_few_trials_give_no_verdict() -> None:
    assert uses_length([found(256, 19, 19)], 0.9) is None


def prefix(length: int, perplexity: float | None) -> PerplexityPoint:
    return PerplexityPoint(length, perplexity)


def test_short_delta_is_the_worst_up_to_the_trained_length() -> None:
    baseline = [prefix(256, 10.0), prefix(512, 8.0), prefix(1024, 20.0)]
    ours = [prefix(256, 10.5), prefix(512, 8.8), prefix(1024, 100.0)]
    assert short_delta(ours, baseline, 512) == pytest.approx(0.1)
    assert short_delta([prefix(512, None)], baseline, 512) is None


def row(name: str, uses: int | None, models: int | None, delta: float | None, **more: Any) -> MethodRow:
    return MethodRow("model", name, [], [], [], Reach(512, models, uses), delta, 1.0, **more)


def test_pick_follows_the_rule() -> None:
    rows = [row("a", 1024, 2048, 0.5), row("b", 2048, 512, 0.9), row("c", 2048, 1024, 0.2), row("d", 2048, 1024, 0.1)]
    pick = pick_method(rows)
    assert pick is not None and pick.method == "d" and len(pick.reasons) == 3
    assert "shared with 2 others" in pick.reasons[0]
    assert pick_method([row("a", None, None, None)]) is None
    tuned = pick_method([row("a", 4096, 4096, 0.1), row("a", 8192, 4096, 0.2, training=TrainingSummary("id"))])
    assert tuned is not None and (tuned.method, tuned.training) == ("a", "id")
    assert pick is not None and pick.training is None
    failed = pick_method([row("a", 4096, 4096, 0.0, errors=["x"]), row("b", 512, 512, 0.0)])
    assert failed is not None and failed.method == "b"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([25, 20, 6, 5], (4096, 1024)),
        ([25, 25, 25, 25], (4096, 4096)),
        ([4, 25, 25, 25], (0, 0)),
        ([25, 4, 25, 25], (512, 512)),
    ],
)
def test_reached_needs_every_shorter_length(found: list[int], expected: tuple[int, int]) -> None:
    """k_max at 20 and 80 %."""
    values = [(512 * 2**i, correct / 25) for i, correct in enumerate(found)]
    assert (reached(values[::-1], 0.2), reached(values, 0.8)) == expected
