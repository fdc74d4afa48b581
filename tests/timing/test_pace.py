"""What remains is told from what is done, by a clock of the test."""

from __future__ import annotations

import random

import pytest

from ropectl.timing.operations import NOTHING, Cost
from ropectl.timing.pace import Pace


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def window(tokens: int) -> Cost:
    return Cost(1, 1e6 * tokens, 100.0 * tokens**2, 0)


def seconds(cost: Cost) -> float:
    """An accelerator: most of a short pass is not its operations."""
    return 0.05 * cost.passes + 3e-11 * cost.total


def run(pace: Pace, clock: Clock, passes: list[Cost], noise: random.Random | None = None, warm_up: float = 0.0) -> None:
    for number, cost in enumerate(passes):
        clock.now += seconds(cost) * (1 if noise is None else noise.uniform(0.9, 1.2)) + (warm_up if not number else 0)
        pace.advance(cost)


def test_nothing_is_said_before_anything_is_done() -> None:
    clock = Clock()
    pace = Pace(window(512) * 10, clock)
    assert pace.remaining() is None and pace.share == 0 and pace.expected(window(16)) is None
    assert Pace(NOTHING, clock).remaining() is None


def test_short_passes_mislead_nobody() -> None:
    """By operations alone, what comes first here makes the rest seem many times longer than it is."""
    clock, short, long = Clock(), [window(16)] * 30 + [window(64)] * 30 + [window(512)] * 30, [window(32_768)] * 20
    pace = Pace(sum([*short, *long], NOTHING), clock)
    run(pace, clock, short, random.Random(0), warm_up=5.0)
    left, truth = pace.remaining(), sum(map(seconds, long))
    by_operations = (clock.now - 100) / sum(short, NOTHING).total * sum(long, NOTHING).total
    assert by_operations > 10 * truth
    assert left is not None and left.low <= 1.1 * truth and truth <= 1.1 * left.high and left.high < 3 * left.low


def test_the_range_is_wide_only_where_work_of_another_size_remains() -> None:
    clock = Clock()
    pace = Pace(window(512) * 100, clock)
    run(pace, clock, [window(512)] * 10)
    same = pace.remaining()
    assert same is not None and same.middle == pytest.approx(90 * seconds(window(512)))
    assert same.high / same.middle == pytest.approx(1.1) == pytest.approx(same.middle / same.low)
    pace = Pace(window(512) * 10 + window(16) * 1000, clock)
    run(pace, clock, [window(512)] * 10)
    other = pace.remaining()
    assert other is not None and other.low < 1000 * seconds(window(16)) < other.high


def test_a_changed_load_is_followed() -> None:
    clock = Clock()
    pace = Pace(window(512) * 1000, clock)
    run(pace, clock, [window(512)] * 400)
    for _ in range(100):
        clock.now += 10 * seconds(window(512))
        pace.advance(window(512))
    left = pace.remaining()
    assert left is not None and left.middle == pytest.approx(5000 * seconds(window(512)), rel=0.05)


def test_a_measurement_that_is_over_counts_as_planned() -> None:
    """Answers that end early, and a length that failed, leave nothing behind."""
    clock = Clock()
    pace = Pace(window(512) * 20, clock)
    pace.begin(window(512) * 10)
    run(pace, clock, [window(512)] * 4)
    assert pace.share == pytest.approx(0.2)
    pace.begin(window(512) * 10)
    assert pace.share == pytest.approx(0.5)
    run(pace, clock, [window(512)] * 15)
    assert pace.share == 1.0 and pace.done.total == pytest.approx(pace.total.total)
    left = pace.remaining()
    assert left is not None and left.high == 0


def test_the_time_before_a_measurement_is_not_of_its_passes() -> None:
    """Loading the next model, for example."""
    clock = Clock()
    pace = Pace(window(512) * 20, clock)
    pace.begin(window(512) * 10)
    run(pace, clock, [window(512)] * 10)
    clock.now += 1000
    pace.begin(window(512) * 10)
    run(pace, clock, [window(512)] * 2)
    left = pace.remaining()
    assert left is not None and left.middle == pytest.approx(8 * seconds(window(512)))


def test_bytes_have_no_passes() -> None:
    clock = Clock()
    pace = Pace(Cost(weights=1000), clock)
    for _ in range(5):
        clock.now += 1
        pace.advance(Cost(weights=100))
    left = pace.remaining()
    assert (
        left is not None
        and (left.low, left.middle, left.high) == pytest.approx((5 / 1.1, 5, 5.5))
        and pace.elapsed == 5
    )
