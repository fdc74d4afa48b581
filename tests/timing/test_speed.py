"""Rates are recovered from noisy timings, and what they say of other work contains the truth."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ropectl.timing.fit import fit_rates
from ropectl.timing.operations import Cost
from ropectl.timing.speed import Span, Speed, Timed, spread

#: Seconds per operation with weights, of attention and of the head, and per pass.
TRUE = (5e-12, 9e-12, 7e-12, 2e-3)


def cost_of(tokens: int, layers: int = 30, head: bool = False) -> Cost:
    """A pass of a model of SmolLM2's size."""
    return Cost(layers / 30, 7e6 * layers * tokens, 1152.0 * layers * tokens**2, 5.6e7 * tokens * head)


def truth(cost: Cost) -> float:
    return sum(rate * amount for rate, amount in zip(TRUE, cost.parts, strict=True))


PASSES = [cost_of(tokens, layers) for layers in (1, 8) for tokens in (16, 128, 256, 512, 1024)]
PASSES += [Cost(head=5.6e7 * tokens) for tokens in (85, 170)]


def test_exact_timings_give_exact_rates() -> None:
    rates = fit_rates([cost.parts for cost in PASSES], [truth(cost) for cost in PASSES])
    assert rates == pytest.approx(TRUE, rel=1e-6)


def test_rates_are_those_of_least_absolute_differences() -> None:
    """Against a search over all pairs of timings: a minimum of absolute differences passes through as many as it has rates."""
    rng = random.Random(4)
    for _ in range(20):
        rows = [(rng.uniform(1, 10), rng.uniform(1, 10)) for _ in range(9)]
        seconds = [2 * a + 3 * b for a, b in rows]
        seconds = [value * rng.choice([1, 1, 1, rng.uniform(1, 8)]) for value in seconds]

        def misfit(rates: tuple[float, ...], rows=rows, seconds=seconds) -> float:  # type: ignore[no-untyped-def]
            return sum(abs(rates[0] * a + rates[1] * b - s) / s for (a, b), s in zip(rows, seconds, strict=True))

        pairs = [(i, j) for i in range(9) for j in range(i)]
        through = [np.linalg.solve([rows[i], rows[j]], [seconds[i], seconds[j]]) for i, j in pairs]
        best = min(misfit(tuple(rates)) for rates in through if min(rates) >= 0)
        assert misfit(fit_rates(rows, seconds)) <= best * 1.1 + 1e-9


def test_rates_are_never_negative() -> None:
    rates = fit_rates([(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)], [1.0, 1.9, 3.7])  # a line that would begin below 0
    assert min(rates) >= 0
    assert fit_rates([(1.0, 1.0), (2.0, 2.0)], [3.0, 6.0]) == pytest.approx((3.0, 0.0)), "of equal columns the first"


@pytest.mark.parametrize("seed", range(20))
def test_other_work_is_within_the_range(seed: int) -> None:
    """Noise only adds time; one timing in ten is disturbed and takes three times as long."""
    rng = random.Random(seed)

    def noisy(seconds: float) -> float:
        return seconds * (1 + rng.expovariate(30)) * (3 if rng.random() < 0.1 else 1)

    timed = [Timed(cost, [noisy(truth(cost)) for _ in range(8)]) for cost in PASSES]
    alone = [truth(cost) * rng.uniform(0.98, 1.02) for cost in PASSES]
    speed = Speed.calibrated(timed, alone, margin=1.15, slowed=None)
    for tokens, passes in ((512, 100), (8192, 3), (20, 500)):
        work = cost_of(tokens, head=True) * passes
        undisturbed, span = truth(work), speed.seconds(work)
        assert span.low <= undisturbed <= span.high
        mean = undisturbed * (1 + 1 / 30) * 1.2  # what a run under the same disturbances takes
        assert span.low <= mean <= span.high and span.middle == pytest.approx(mean, rel=0.25), (
            "a few long passes decide how much is disturbed"
        )
        assert span.high / span.low < 4


def test_on_a_busy_machine_the_range_begins_at_what_it_takes_without_other_work() -> None:
    rng = random.Random(1)
    timed = [Timed(cost, [truth(cost) * rng.uniform(4, 40) for _ in range(3)]) for cost in PASSES]
    speed = Speed.calibrated(timed, [truth(cost) for cost in PASSES], margin=1.15, slowed=1.0)
    work = cost_of(512, head=True) * 100
    span = speed.seconds(work)
    assert span.low == pytest.approx(truth(work) / 1.15, rel=0.02)
    loaded = Speed.calibrated(
        [Timed(cost, [truth(cost)]) for cost in PASSES], list(map(truth, PASSES)), 1.2, slowed=3.0
    )
    assert loaded.seconds(work).high == pytest.approx(3.6 * truth(work), rel=0.02), "quiet for a moment, says the load"
    assert loaded.seconds(work).middle == pytest.approx(truth(work), rel=0.02)
    assert span.high > 20 * truth(work) and span.middle == pytest.approx((span.low * span.high) ** 0.5, rel=0.02)


def test_spread_is_of_the_same_pass() -> None:
    assert spread([Timed(PASSES[0], [1.0, 1.0]), Timed(PASSES[1], [9.0, 9.0])]) == 1.0
    assert spread([Timed(PASSES[0], [1.0, 3.0]), Timed(PASSES[1], [1.0, 1.0])]) == 2.0


def test_a_single_size_leaves_open_what_its_time_is_due_to() -> None:
    """Work of the same size is certain, work of another one is not."""
    timed = [Timed(cost_of(512), [2.0, 2.0, 2.0])]
    same, shorter = Speed.of(timed).seconds(cost_of(512) * 10), Speed.of(timed).seconds(cost_of(16) * 10)
    assert (same.low, same.middle, same.high) == pytest.approx((20, 20, 20))
    assert shorter.low < 1 and shorter.high == pytest.approx(20)
    assert Span(1, 2, 3) + Span(1, 1, 1) == Span(2, 3, 4) and Span(1, 2, 3) * 2 == Span(2, 4, 6)
