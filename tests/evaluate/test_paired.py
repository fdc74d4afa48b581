"""Paired differences: against numpy alone, closed forms and simulations, and which of several rows lead."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from ropectl.evaluate.judging.paired import leaders, loss_difference, mcnemar_p_value, score_difference, shares_interval
from ropectl.evaluate.judging.statistics import wilson_interval
from ropectl.records import Difference, PerplexityPoint


def point(sums: list[float], tokens: int = 100) -> PerplexityPoint:
    count = len(sums)
    mean = sum(sums) / (tokens * count)
    return PerplexityPoint(
        512, math.exp(mean), sum(sums), tokens * count, count, sums, document_num_tokens=[tokens] * count
    )


def test_a_pair_is_known_better_than_its_members() -> None:
    """One method is worse in every document, by far less than documents differ."""
    rng = random.Random(0)
    base = [rng.uniform(150, 350) for _ in range(12)]
    other = [value + rng.uniform(5, 7) for value in base]
    found = loss_difference("prefix", point(other), point(base))
    assert found is not None and found.told_apart and found.units == 12
    assert 0.05 < (found.ci_low or 0) < found.value < (found.ci_high or 0) < 0.07
    assert found.value == pytest.approx(np.mean(np.subtract(other, base)) / 100)


def test_other_tokens_are_no_pair() -> None:
    assert loss_difference("prefix", point([200.0] * 3), point([200.0] * 4)) is None
    assert loss_difference("prefix", point([200.0] * 3), point([200.0] * 3, tokens=99)) is None
    assert loss_difference("prefix", PerplexityPoint(512), PerplexityPoint(512)) is None


def test_rounding_is_no_difference() -> None:
    """It may be there for certain, and still be one of passes, not of methods."""
    found = loss_difference("prefix", point([200.0 + 1e-6 * k for k in range(9)]), point([200.0] * 9))
    assert found is not None and found.told_apart is False
    one = loss_difference("prefix", point([210.0]), point([200.0]))
    assert one is not None and one.told_apart is None and one.ci_low is None


@pytest.mark.parametrize("units", [8, 16, 64])
def test_a_method_is_not_told_apart_from_itself(units: int) -> None:
    """Two measurements of the same thing, each with noise of its own, over many seeds."""
    rng = np.random.default_rng(units)
    apart = 0
    for _ in range(8000):
        texts = 100 * rng.normal(2.5, 0.5, units)
        ours, theirs = (list(map(float, texts + rng.normal(0, 3, units))) for _ in range(2))
        found = loss_difference("prefix", point(ours), point(theirs))
        apart += bool(found and found.told_apart)
    assert apart / 8000 <= 0.055  # 5 %, and what chance adds in 8000 seeds (2 standard errors)


def trials(outcomes: list[int]) -> dict[tuple[float, int], float]:
    return {(0.5, number): float(outcome) for number, outcome in enumerate(outcomes)}


@pytest.mark.parametrize("count", [8, 16, 40, 64])
def test_answers_are_not_told_apart_from_others_like_them(count: int) -> None:
    """Right or wrong answers of equal probability, more or less correlated by prompt; and what intervals hold."""
    rng = np.random.default_rng(count)
    apart = covered = 0
    for _ in range(3000):
        share, other, alike = rng.uniform(0.05, 0.95, 3)
        hard = rng.random(count)
        again = np.where(rng.random(count) < alike, hard, rng.random(count))
        ours = [int(one) for one in hard < share]
        same = score_difference("passkey", 512, trials(ours), trials([int(one) for one in again < share]))
        differing = score_difference("passkey", 512, trials(ours), trials([int(one) for one in again < other]))
        assert same is not None and differing is not None
        assert differing.ci_low is not None and differing.ci_high is not None
        apart += bool(same.told_apart)
        covered += differing.ci_low <= share - other <= differing.ci_high
    assert apart / 3000 <= 0.05
    assert 0.93 <= covered / 3000 <= 0.97


def test_mcnemar_is_a_binomial_test() -> None:
    """Against every sequence of coin tosses: as uneven as this or more."""
    for ours, theirs in itertools.product(range(6), repeat=2):
        tosses = list(itertools.product((0, 1), repeat=ours + theirs))
        uneven = sum(abs(2 * sum(toss) - len(toss)) >= abs(ours - theirs) for toss in tosses)
        assert mcnemar_p_value(ours, theirs) == pytest.approx(uneven / len(tosses))


def test_interval_of_two_shares() -> None:
    """Without correlation it is the square root of the two Wilson arms' squares, as for independent shares."""
    pairs = [(1.0, 1.0)] * 4 + [(1.0, 0.0)] * 4 + [(0.0, 1.0)] * 4 + [(0.0, 0.0)] * 4
    low, high = wilson_interval(8, 16)
    arm = math.hypot(0.5 - low, high - 0.5)
    assert shares_interval(pairs) == pytest.approx((-arm, arm))
    # 36 and 12 of 50, the second among the first: correlation narrows the interval, which holds the difference.
    low, high = shares_interval([(1.0, 1.0)] * 12 + [(1.0, 0.0)] * 24 + [(0.0, 0.0)] * 14)
    (low1, _), (_, high2) = wilson_interval(36, 50), wilson_interval(12, 50)
    assert low < 0.48 < high and low > 0.48 - math.hypot(0.72 - low1, high2 - 0.24)
    none_differ = shares_interval([(1.0, 1.0)] * 40)
    assert none_differ[0] < 0 < none_differ[1]  # 40 equal answers do not prove equality


def test_certainty_and_interval_agree() -> None:
    """Zero is in the interval exactly where the exact test tells nothing apart."""
    for ours, theirs, both in itertools.product(range(8), range(8), (0, 5, 20)):
        first = [1] * both + [1] * ours + [0] * theirs
        second = [1] * both + [0] * ours + [1] * theirs
        if not first:
            continue
        found = score_difference("passkey", 512, trials(first), trials(second))
        assert found is not None and found.p_value is not None
        if found.told_apart:
            assert found.p_value <= 0.05
        assert found.told_apart is not (found.ci_low <= 0 <= found.ci_high)


def test_scores_between_are_paired_by_bootstrap() -> None:
    ours = {(0.0, k): k % 5 / 4 for k in range(20)}
    theirs = {(0.0, k): max(0.0, k % 5 / 4 - 0.25) for k in range(20)}
    found = score_difference("task", 512, ours, theirs)
    assert found is not None and found.told_apart and found.p_value is None and found.value == pytest.approx(0.2)
    assert score_difference("task", 512, ours, {}) is None
    assert score_difference("task", 512, ours, {(0.5, k): 1.0 for k in range(20)}) is None


def pair(value: float, apart: bool | None) -> Difference:
    return Difference(measure="prefix", length=512, value=value, units=8, told_apart=apart)


def test_the_best_stands_alone_only_where_it_is_told_apart() -> None:
    values = [9.0, 8.0, 8.1, None, math.inf]
    alone = leaders(values, lambda a, b: pair(-1.0, True))
    assert alone is not None and (alone.best, alone.tied) == (1, [])
    tie = leaders(values, lambda a, b: pair(-1.0, b != 2))
    assert tie is not None and (tie.best, tie.tied) == (1, [2])
    assert leaders(values, lambda a, b: pair(-1.0, None)) is None, "one document tells nothing"
    assert leaders(values, lambda a, b: None) is None and leaders([9.0, None], lambda a, b: pair(0, True)) is None
    most = leaders([1.0, 3.0, 2.0], lambda a, b: pair(1.0, True), smallest=False)
    assert most is not None and most.best == 1
