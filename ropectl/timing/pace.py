"""How long the rest of some work takes, from what of it is done."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ropectl.timing.operations import NOTHING, Cost
from ropectl.timing.speed import Span, Speed, Timed

#: Timings that are kept of passes of about one size: the last ones, for the load of a machine changes.
_KEPT = 64

#: What passes to come may differ by.
_MARGIN = 1.1


@dataclass
class Pace:
    """Follows work and estimates its rest.

    Passes of about one size are taken together, so that many short ones count no more than a few long ones; what a pass
    costs however short it is, is told from what its operations cost as soon as there are passes of several sizes. The very
    first one, which warms up memory and kernels, is left out as soon as there is another.

    Attributes:
        total: What all of it costs.
        clock: Returns the time [s].
    """

    total: Cost
    clock: Callable[[], float] = time.monotonic
    _sizes: dict[int, tuple[Cost, deque[float]]] = field(default_factory=dict)
    _over: Cost = NOTHING
    _planned: Cost = NOTHING
    _current: Cost = NOTHING
    _passes: int = 0

    def __post_init__(self) -> None:
        self._began = self._last = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self._began

    @property
    def done(self) -> Cost:
        """What is done; of a measurement never more than it was expected to cost."""
        excess = self._current.less(self._planned) if self._planned.total else NOTHING
        return self._over + self._current.less(excess)

    @property
    def share(self) -> float:
        """The share of all operations that is done, in [0, 1]."""
        return min(1.0, self.done.total / self.total.total) if self.total.total else 0.0

    def begin(self, planned: Cost) -> None:
        """Begins the next measurement, which is expected to cost so much; the one before is over, whatever it cost."""
        self._over, self._planned, self._current = self._over + self._planned, planned, NOTHING
        self._last = self.clock()

    def advance(self, cost: Cost) -> None:
        """Takes what was done since the last call."""
        now = self.clock()
        seconds, self._last = max(now - self._last, 1e-6), now
        self._current += cost
        if self._passes == 1:
            self._sizes.clear()
        self._passes += 1
        if cost.total <= 0:
            return
        size = round(2 * math.log2(cost.total / max(1.0, cost.passes)))
        like, timings = self._sizes.setdefault(size, (cost, deque(maxlen=_KEPT)))
        timings.append(seconds * like.total / cost.total)

    def expected(self, cost: Cost) -> Span | None:
        """Returns how long some work will take; None if nothing was done yet."""
        if not self._sizes:
            return None
        timed = [Timed(like, list(timings)) for like, timings in self._sizes.values()]
        return Speed.of(timed, _MARGIN).seconds(cost)

    def remaining(self) -> Span | None:
        """Returns how long the rest will take; None if nothing was done yet, or it is not known how much there is."""
        return self.expected(self.total.less(self.done)) if self.total.total else None
