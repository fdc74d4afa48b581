"""The speed of this machine, from short passes of models of few layers with random weights.

What passes take on a machine without other work is known well; the timings say by how much they are slowed now.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ropectl.evaluate.short_passes import TimedPass
from ropectl.timing.load import Load
from ropectl.timing.operations import Cost
from ropectl.timing.speed import Span, Speed, Timed, spread

#: Timings of the same passes that vary by this factor, or are so much longer than those without other work, are those of a
#: busy machine.
_UNSTEADY, _SLOWED = 1.5, 2.5

#: Weights of the layers of the larger model [bytes]; two layers may be more.
_MOST_BYTES = 2**28

#: What the passes of a measurement may differ by: they have a cache, real weights, and work around them.
_MARGIN = 1.2


@dataclass(frozen=True)
class Calibration:
    """The speed of this machine, and what it was told from.

    Attributes:
        passes: What was timed.
        load: The load of the machine before; None where the passes ran elsewhere than on its CPU.
        seconds: How long all of it took.
    """

    passes: Sequence[TimedPass]
    load: Load | None
    seconds: float

    @property
    def longest(self) -> int:
        """The length of the longest pass through layers [tokens]."""
        return max(each.made.length for each in self.passes if each.made.layers)

    @property
    def slowdown(self) -> float:
        """How much longer passes took than on a machine without other work."""
        return self._longer_than(lambda each: each.alone)

    @property
    def is_busy(self) -> bool:
        """True if the machine has other work, as its load or the timings say."""
        is_loaded = self.load is not None and self.load.is_high
        return is_loaded or spread(self._timed) > _UNSTEADY or self.slowdown > _SLOWED

    @property
    def gain_of_one_thread(self) -> float:
        """How much longer passes took than on one thread of the CPU, which waits for no other."""
        return self._longer_than(lambda each: each.one_thread)

    def _longer_than(self, other: Callable[[TimedPass], float]) -> float:
        own = [each for each in self.passes if each.seconds]
        return sum(sum(each.seconds) / len(each.seconds) for each in own) / sum(map(other, own))

    @property
    def speed(self) -> Speed:
        """The rates that agree with it."""
        slowed = None if not self.is_busy else 1.0 if self.load is None else self.load.slowdown(torch.get_num_threads())
        return Speed.calibrated(self._timed, [each.alone for each in self.passes], _MARGIN, slowed)

    @property
    def _timed(self) -> list[Timed]:
        """The timings; a pass that there was no time for was slowed as the others were."""
        return [Timed(each.made.cost, each.seconds or [each.alone * self.slowdown]) for each in self.passes]

    def time_record(self, span: Span) -> dict[str, Any]:
        """Returns what a record says of a time that was told from it, and of the machine."""
        return {
            "seconds": span.middle,
            "seconds_low": span.low,
            "seconds_high": span.high,
            "busy": self.is_busy,
            "load": None if self.load is None else self.load.average,
            "cores": None if self.load is None else self.load.cores,
            "gain_of_one_thread": None if self.load is None else round(self.gain_of_one_thread, 3),
        }

    def to_json(self) -> dict[str, Any]:
        """Returns what a record says of it."""
        return {
            "seconds": self.seconds,
            "passes": [
                {
                    "layers": each.made.layers,
                    "rows": each.made.rows,
                    "length": each.made.length,
                    "seconds": each.seconds,
                    "alone_seconds": each.alone,
                    "one_thread_seconds": each.one_thread,
                }
                for each in self.passes
            ],
        }


def calibrate(passes: Callable[[int], Iterable[TimedPass]], layers: Sequence[int], device: Any) -> Calibration:
    """Returns the speed of this machine.

    Args:
        passes: Builds a model of so many layers, and times its passes.
        layers: The numbers of layers.
        device: Where they run.
    """
    load, began = Load.now() if device.type == "cpu" else None, time.perf_counter()
    timed: list[TimedPass] = []
    for count in layers:
        timed += passes(count)
        gc.collect()  # before the next model is built
    return Calibration(timed, load, round(time.perf_counter() - began, 3))


def layer_counts(num_layers: int, num_bytes: int) -> list[int]:
    """Returns the numbers of layers of the models to time: one, and as many as are small.

    Args:
        num_layers: Layers of the whole model.
        num_bytes: The size of their weights, all together.
    """
    return sorted({1, min(num_layers, max(2, _MOST_BYTES * num_layers // max(1, num_bytes)))})


def part_of(cost: Cost, layers: int, num_layers: int) -> Cost:
    """Returns the cost of a pass with fewer layers; what is around them counts as one more, and its head as it is."""
    share = layers / num_layers
    return Cost(cost.passes * (layers + 1) / (num_layers + 1), cost.weights * share, cost.attention * share, cost.head)
