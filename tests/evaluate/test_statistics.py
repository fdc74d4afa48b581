"""Intervals: against closed forms, against computations of numpy's own, and against the truth in simulations."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from ropectl.evaluate.judging.statistics import (
    independent_units,
    mean_interval,
    perplexity_interval,
    score_interval,
    student_95,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (24, 25, 0.8046, 0.9929), (0, 0, 0.0, 1.0)],
)
def test_wilson_interval(successes: int, trials: int, low: float, high: float) -> None:
    """Against values tabulated for the score interval."""
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("trials", [8, 16, 40, 64])
def test_wilson_interval_covers_at_its_rate(trials: int) -> None:
    rng = random.Random(trials)
    covered = 0
    for _ in range(4000):
        share = rng.uniform(0.02, 0.98)
        low, high = wilson_interval(sum(rng.random() < share for _ in range(trials)), trials)
        covered += low <= share <= high
    assert 0.93 < covered / 4000 < 0.97


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 30, 63, 200])
def test_student_quantile(degrees: int) -> None:
    """The density of Student's distribution, integrated between the quantiles, is 95 %."""
    end = student_95(degrees)
    points = np.linspace(-end, end, 200_001)
    constant = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    mass = np.trapezoid(constant * (1 + points**2 / degrees) ** (-(degrees + 1) / 2), points)
    assert mass == pytest.approx(0.95, abs=2e-5)


def draw(kind: str, rng: np.random.Generator, count: int) -> list[float]:
    """Draws with a mean of zero: as losses are, by and large, and skewed as those of documents of several kinds."""
    values = {
        "normal": lambda: rng.normal(0, 1, count),
        "gamma": lambda: rng.gamma(4, 1, count) - 4,
        "lognormal": lambda: rng.lognormal(0, 0.5, count) - math.exp(0.125),
    }[kind]()
    return [float(value) for value in values]


@pytest.mark.parametrize("kind", ["normal", "gamma", "lognormal"])
@pytest.mark.parametrize("units", [8, 16, 64])
def test_intervals_cover_at_their_rate(units: int, kind: str) -> None:
    """95 % intervals hold the truth in 93 to 97 % of simulations; percentiles of the mean would at 8 units in 88 %."""
    rng = np.random.default_rng(units)
    covered = 0
    for _ in range(2000):
        interval = mean_interval(draw(kind, rng, units))
        assert interval is not None
        covered += interval[0] <= 0.0 <= interval[1]
    assert 0.93 <= covered / 2000 <= 0.97


@pytest.mark.parametrize("clusters", [8, 16, 64])
def test_clustered_intervals_cover_at_their_rate(clusters: int) -> None:
    """Windows of a document are alike: as if they were documents of their own, the interval would be far too narrow."""
    rng = np.random.default_rng(clusters)
    covered = naive = 0
    for _ in range(1000):
        windows = rng.integers(1, 6, clusters)
        owner = [int(each) for each in np.repeat(np.arange(clusters), windows)]
        common = rng.normal(0, 1, clusters)
        tokens = [100.0] * len(owner)
        sums = [100 * float(common[each] + rng.normal(0, 0.5)) for each in owner]
        clustered = mean_interval(sums, tokens, owner)
        assert clustered is not None
        covered += clustered[0] <= 0.0 <= clustered[1]
        losses = np.divide(sums, tokens)
        naive += abs(losses.mean()) <= 1.96 * losses.std(ddof=1) / math.sqrt(len(losses))
    assert 0.93 <= covered / 1000 <= 0.97 and naive / 1000 < 0.9


def naive_studentized(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The same idea with other draws, one at a time."""
    rng, count = np.random.default_rng(1), len(values)

    def mean_and_error(chosen: np.ndarray) -> tuple[float, float]:
        x, w = values[chosen], weights[chosen]
        mean = x.sum() / w.sum()
        return mean, math.sqrt(count / (count - 1) * ((x - mean * w) ** 2).sum()) / w.sum()

    mean, error = mean_and_error(np.arange(count))
    ratios = [(m - mean) / e for m, e in (mean_and_error(rng.integers(0, count, count)) for _ in range(20_000))]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return mean - high * error, mean - low * error


@pytest.mark.parametrize("units", [8, 12, 40])
def test_interval_is_students_with_the_longer_tails_of_a_bootstrap(units: int) -> None:
    rng = np.random.default_rng(units)
    weights = rng.integers(50, 500, units).astype(float)
    values = weights * rng.gamma(1, 0.5, units)  # a tail to the right
    low, high = naive_studentized(values, weights)
    mean = values.sum() / weights.sum()
    error = math.sqrt(units / (units - 1) * ((values - mean * weights) ** 2).sum()) / weights.sum()
    expected = min(low, mean - student_95(units - 1) * error), max(high, mean + student_95(units - 1) * error)
    found = mean_interval(list(values), list(weights))
    assert found == pytest.approx(expected, abs=0.06 * (high - low))
    assert high > mean + 1.1 * student_95(units - 1) * error, "the tail is there"


def test_interval_of_few_documents_is_students() -> None:
    values = [1.0, 2.0, 4.0, 7.0]
    error = np.std(values, ddof=1) / 2
    assert mean_interval(values) == pytest.approx((3.5 - 3.182446 * error, 3.5 + 3.182446 * error))
    assert mean_interval([1.0]) is None and mean_interval([1.0, 2.0], [3, 0]) is None


def test_interval_of_units_without_spread() -> None:
    assert mean_interval([2.0] * 12, [4.0] * 12) == (0.5, 0.5)
    # Many draws of one odd unit among many have no spread: no endless interval.
    odd = mean_interval([0.0] * 11 + [1.0])
    assert odd is not None and all(map(math.isfinite, odd)) and odd[0] < 1 / 12 < odd[1]


def test_a_single_document_has_its_windows_as_units() -> None:
    values = [float(value) for value in range(12)]
    assert mean_interval(values, clusters=[0] * 12) == mean_interval(values)
    assert independent_units(12, [0] * 12) == independent_units(12) == 12
    two = mean_interval(values, clusters=[0] * 6 + [1] * 6)
    assert independent_units(12, [0] * 6 + [1] * 6) == 2
    assert two == mean_interval([15.0, 51.0], [6.0, 6.0])


def test_perplexity_interval_is_that_of_the_mean_loss() -> None:
    sums, tokens = [230.0, 250.0, 210.0, 260.0], [100, 100, 100, 100]
    low, high = perplexity_interval(sums, tokens) or (0.0, 0.0)
    assert (math.log(low), math.log(high)) == pytest.approx(mean_interval(sums, tokens))
    assert perplexity_interval([1.0], [1]) is None


@pytest.mark.parametrize("trials", [8, 16, 40, 64])
def test_intervals_of_shares_cover_at_their_rate(trials: int) -> None:
    """Answers that contain some of four words."""
    rng = np.random.default_rng(trials)
    covered = 0
    for _ in range(2000):
        share = rng.uniform(0.05, 0.95)
        low, high = score_interval([float(score) for score in rng.binomial(4, share, trials) / 4])
        assert 0.0 <= low <= high <= 1.0
        covered += low <= share <= high
    assert 0.93 <= covered / 2000 <= 0.97
    assert score_interval([0.25] * trials) == wilson_interval(0.25 * trials, trials)


def test_many_units_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of 50,000 trials would take gigabytes; up to 500 units they are made."""
    from ropectl.evaluate.judging import statistics

    monkeypatch.setattr(statistics, "_draws", lambda units: pytest.fail("drawn"))
    low, high = mean_interval([0.0, 0.5, 1.0, 0.5] * 12_500) or (0.0, 0.0)
    error = math.sqrt(0.125 / 49_999)
    assert (low, high) == pytest.approx((0.5 - 1.96 * error, 0.5 + 1.96 * error), abs=1e-5)
