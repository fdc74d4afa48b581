"""A calibration against an imagined machine: its clock, its noise, its threads."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ropectl.evaluate import calibration, short_passes
from ropectl.evaluate.calibration import Calibration, calibrate, layer_counts, part_of
from ropectl.evaluate.cost import ForwardCost, ForwardPass
from ropectl.evaluate.forward_speed import forward_speed
from ropectl.evaluate.short_passes import BUDGET, ShortPass, TimedPass, doublings, time_passes
from ropectl.timing.load import Load
from ropectl.timing.operations import Cost
from ropectl.timing.speed import Span
from tests.conftest import tiny_config

LAYERS, CPU = 30, torch.device("cpu")
FORWARD = ForwardCost(layers=106_000_000, head=28_000_000, attention=34_560)


@dataclass
class Machine:
    """A machine with two cores. Threads that wait for each other are slowed far more than their share.

    Attributes:
        slowed: Returns by how much a pass on all threads is slowed.
    """

    slowed: Any = lambda: 1.0
    wall: float = 0.0
    processor: float = 0.0
    threads: int = 2
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def seconds(self, cost: Cost) -> float:
        """What a pass takes on two threads without other work."""
        return 5e-12 * cost.weights + 8e-12 * cost.attention + 7e-12 * cost.head + 0.03 * cost.passes

    def run(self, cost: Cost) -> None:
        seconds = self.seconds(cost)
        if self.threads == 1:
            self.processor += 2 * seconds * self.rng.uniform(0.98, 1.02)
            self.wall += 2 * seconds * self.rng.uniform(1, 1.5)
        else:
            self.wall += seconds * self.slowed()

    def perf_counter(self) -> float:
        return self.wall

    def process_time(self) -> float:
        return self.processor

    def passes(self, longest: int, layers: int) -> list[TimedPass]:
        def one(length: int) -> ShortPass:
            cost = part_of(FORWARD.of_pass(ForwardPass(1, length)), layers, LAYERS)
            return ShortPass(layers, 1, length, cost, partial(self.run, cost))

        timed = time_passes([one(length) for length in doublings(longest)], CPU, share=0.45)
        if layers == 1:
            head = FORWARD.of_sums(0, 0, 0, 170)
            timed += time_passes([ShortPass(0, 1, 170, head, partial(self.run, head))], CPU, share=0.1)
        return timed


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    for module in (short_passes, calibration):
        monkeypatch.setattr(module, "time", made)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: setattr(made, "threads", count))
    monkeypatch.setattr(Load, "now", classmethod(lambda cls: cls(0.1, 2)))
    return made


def calibrated(machine: Machine, longest: int) -> Calibration:
    return calibrate(lambda layers: machine.passes(longest, layers), [1, 18], CPU)


WORK = [(512, 511, 36), (8192, 8191, 4), (64, 5, 300)]


@pytest.mark.parametrize("longest", [300, 512, 8192])
@pytest.mark.parametrize("seed", range(5))
def test_a_quiet_machine_is_known_well(machine: Machine, longest: int, seed: int) -> None:
    rng = random.Random(seed)
    machine.slowed = lambda: 1 + rng.expovariate(25)
    found = calibrated(machine, longest)
    assert not found.is_busy and found.seconds <= BUDGET
    assert max(each.made.length for each in found.passes if each.made.layers) <= longest
    for length, scored, count in WORK:
        if length <= 2 * longest:
            work = FORWARD.of_pass(ForwardPass(1, length, scored=scored)) * count
            span, truth = found.speed.seconds(work), machine.seconds(work)
            assert span.low <= truth <= span.high and span.middle == pytest.approx(truth, rel=0.15)
            assert span.high < 2 * span.low


def test_three_lengths_are_repeated(machine: Machine) -> None:
    found = calibrated(machine, 512)
    for layers in (1, 18):
        own = [each for each in found.passes if each.made.layers == layers]
        assert len(own) >= 3 and own[0].made.length == short_passes.SHORTEST
        assert all(len(each.seconds) >= 3 for each in own)
    assert {each.made.length for each in found.passes if each.made.layers == 1} >= {128, 256, 512}


@pytest.mark.parametrize("seed", range(10))
def test_a_busy_machine_is_recognised_and_seen_through(machine: Machine, seed: int) -> None:
    """The fault that this is for: one pass of each of two models, slowed 1 to 60 times, and their difference a layer."""
    rng = random.Random(seed)
    machine.slowed = lambda: rng.lognormvariate(2.0, 0.9)
    found = calibrated(machine, 8192)
    assert found.is_busy and found.gain_of_one_thread > 1.5
    assert found.seconds < 2.5 * BUDGET, "the first of each passes is made whatever it takes"
    for length, scored, count in WORK:
        work = FORWARD.of_pass(ForwardPass(1, length, scored=scored)) * count
        span, alone = found.speed.seconds(work), machine.seconds(work)
        assert 0.7 * alone < span.low <= alone, "what it takes once the machine is quiet"
        assert span.low <= span.middle <= span.high and span.high > 5 * alone
    record = found.time_record(Span(1, 2, 3))
    assert record["busy"] and (record["seconds_low"], record["seconds"], record["seconds_high"]) == (1, 2, 3)


def test_a_high_load_is_busy_on_a_cpu(machine: Machine) -> None:
    found = calibrated(machine, 512)
    for load, is_busy in ((Load(3.4, 2), True), (Load(1.9, 2), False), (None, False)):
        assert Calibration(found.passes, load, 1.0).is_busy is is_busy


def test_passes_that_need_too_much_memory_are_left_out(machine: Machine) -> None:
    def run(length: int) -> None:
        if length > 64:
            raise torch.OutOfMemoryError("out of memory")
        machine.run(FORWARD.of_pass(ForwardPass(1, length)))

    ladder = [ShortPass(1, 1, n, FORWARD.of_pass(ForwardPass(1, n)), partial(run, n)) for n in (16, 64, 256)]
    assert [each.made.length for each in time_passes(ladder, CPU, 0.5)] == [16, 64]
    with pytest.raises(torch.OutOfMemoryError):
        time_passes(ladder[2:], CPU, 0.5)
    assert machine.threads == 2, "as many as before"


def test_an_accelerator_has_no_threads_and_is_waited_for(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    device, waits = SimpleNamespace(type="cuda"), []
    monkeypatch.setattr(short_passes, "_settle", waits.append)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: pytest.fail("the processor's threads are left alone"))
    machine.slowed = iter([3.0, 2.0, *[1.5, 1.0, 1.2] * 99]).__next__
    cost = FORWARD.of_pass(ForwardPass(1, 16))
    [timed] = time_passes([ShortPass(1, 1, 16, cost, partial(machine.run, cost))], device, 0.5)
    assert timed.alone == pytest.approx(machine.seconds(cost)), "its quickest"
    assert len(waits) >= 2 * len(timed.seconds)
    found = calibrate(lambda layers: [timed], [1], device)
    assert found.load is None and found.time_record(Span())["gain_of_one_thread"] is None


def test_models_are_as_large_as_is_quick() -> None:
    assert layer_counts(30, 30 * 14_000_000) == [1, 19]
    assert layer_counts(32, 32 * 400_000_000) == [1, 2], "7B: two layers, whatever they weigh"
    assert layer_counts(4, 4 * 1000) == [1, 4] and layer_counts(1, 10**9) == [1]
    assert doublings(512) == [16, 32, 64, 128, 256, 512] and doublings(700) == [16, 21, 43, 87, 175, 350, 700]
    assert doublings(10) == [10]


@pytest.mark.process
def test_a_real_model_is_timed() -> None:
    """Nothing is said about how long it takes."""
    config = tiny_config()
    forward = ForwardCost.of(config.to_dict())
    found = forward_speed(config, forward, 128, torch.float32, CPU, rows=2)
    passes = [(each.made.layers, each.made.rows, each.made.length) for each in found.passes]
    assert passes == [
        (1, 2, 16),
        (1, 2, 32),
        (1, 2, 64),
        (1, 2, 128),
        (0, 1, 256),
        *((2, 2, n) for n in (16, 32, 64, 128)),
    ]
    span = found.speed.seconds(forward.of_pass(ForwardPass(2, 128, scored=256)))
    assert 0 < span.low <= span.middle <= span.high
    assert found.to_json()["passes"][0]["seconds"] == found.passes[0].seconds
