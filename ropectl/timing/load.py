"""How busy the machine is with other work."""

from __future__ import annotations

import os
from dataclasses import dataclass

#: Processes that want to run, for each core, above which others must be among them: ropectl alone wants no more than the cores.
_CROWDED = 1.1


@dataclass(frozen=True)
class Load:
    """The load of this machine.

    Attributes:
        average: Processes that ran or wanted to in the last minute; None where the system does not say.
        cores: Cores that this process may use.
    """

    average: float | None
    cores: int

    @classmethod
    def now(cls) -> Load:
        """Returns the load of the last minute."""
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(average, cores)

    def slowdown(self, threads: int) -> float:
        """Returns how much longer work on so many threads takes if all that wants to run has its share of the cores."""
        return max(1.0, ((self.average or 0.0) + threads) / self.cores)

    @property
    def is_high(self) -> bool:
        """True if more wants to run than there are cores."""
        return self.average is not None and self.average > _CROWDED * self.cores
