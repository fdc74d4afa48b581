"""Verdicts and intervals."""

from __future__ import annotations

import random

import pytest

from ropectl.evaluate.statistics import wilson_interval
from ropectl.evaluate.verdicts import (
    longest_without_a_miss,
    models_length,
    qualified_length,
    short_delta,
    uses_length,
)
from ropectl.records import PerplexityPoint


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


def tail(length: int, *sums: float) -> PerplexityPoint:
    return PerplexityPoint(length, 1.0, sum(sums), 100 * len(sums), len(sums), list(sums))


@pytest.mark.parametrize(
    ("qualifying", "expected"),
    [
        ({512: True, 1024: True, 2048: False}, 1024),
        ({512: True, 1024: False, 2048: True}, 512),  # a length that fails is not jumped over
        ({256: False, 512: True, 1024: True}, 1024),  # shorter than trained: never counts against it
        ({128: True, 256: False, 512: True, 1024: False}, 512),
        ({256: True, 512: False, 1024: True}, 256),  # the trained length fails
        ({256: False, 512: False, 1024: True}, 0),
        ({1024: True, 2048: True}, 2048),  # the trained length was not measured
        ({128: False, 256: True}, 256),  # nor anything above it
        ({128: True, 256: False}, 128),
        ({256: False}, 0),
    ],
)
def test_every_length_from_the_trained_one_on_has_to_qualify(qualifying: dict[int, bool], expected: int) -> None:
    """Both ``models`` and ``uses``; the trained length is 512."""
    entries = list(qualifying.items())
    assert qualified_length(entries, 512) == qualified_length(entries[::-1], 512) == expected
    baseline = tail(512, *[200.0] * 8)
    points = [tail(length, *[200.0 if good else 250.0] * 8) for length, good in entries]
    assert models_length(points, baseline, 0.02, 512) == expected
    assert uses_length([(length, 1.0 if good else 0.5, 25) for length, good in entries], 0.9, 512) == expected


def test_models_compares_the_same_targets() -> None:
    baseline = tail(512, *[200.0] * 8)
    points = [tail(512, *[200.0] * 8), tail(1024, *[201.5] * 8), tail(2048, *[203.0] * 8)]
    assert models_length(points, baseline, 0.02, 512) == 1024
    assert models_length(points, baseline, 0.05, 512) == 2048
    assert models_length([], baseline, 0.02, 512) is None and models_length(points, None, 0.02, 512) is None


def test_models_wants_certainty_not_a_lucky_mean() -> None:
    baseline = tail(512, *[200.0] * 8)
    scattered = tail(1024, *[190.0, 210.0] * 4)
    assert models_length([scattered], baseline, 0.02, 512) == 0


@pytest.mark.parametrize(("trials", "expected"), [(19, None), (20, 512)])
def test_few_trials_give_no_verdict(trials: int, expected: int | None) -> None:
    assert uses_length([(256, 1.0, 25), (512, 0.9, trials), (1024, 0.89, 25)], 0.9, 512) == expected
    assert uses_length([], 0.9, 512) is None


def prefix(length: int, perplexity: float | None) -> PerplexityPoint:
    return PerplexityPoint(length, perplexity)


def test_short_delta_is_the_worst_up_to_the_trained_length() -> None:
    baseline = [prefix(256, 10.0), prefix(512, 8.0), prefix(1024, 20.0)]
    ours = [prefix(256, 10.5), prefix(512, 8.8), prefix(1024, 100.0)]
    assert short_delta(ours, baseline, 512) == pytest.approx(0.1)
    assert short_delta([prefix(512, None)], baseline, 512) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([25, 20, 6, 5], (4096, 1024)),
        ([25, 25, 25, 25], (4096, 4096)),
        ([4, 25, 25, 25], (0, 0)),
        ([25, 4, 25, 25], (512, 512)),
    ],
)
def test_k_max_needs_every_shorter_length(found: list[int], expected: tuple[int, int]) -> None:
    """k_max at 20 and 80 %."""
    values = [(512 * 2**i, correct / 25) for i, correct in enumerate(found)]
    assert (longest_without_a_miss(values[::-1], 0.2), longest_without_a_miss(values, 0.8)) == expected
