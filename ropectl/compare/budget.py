"""The order in which cells are measured, and a limit of time: what still fits in it, and what is left out."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ropectl.compare.cells import ComparisonCell
from ropectl.rope.methods.none import NoScaling
from ropectl.timing.durations import duration, duration_range
from ropectl.timing.speed import Span

#: A cell, and the number of its model.
Entry = tuple[int, ComparisonCell]

#: Rows that are named one by one in a sentence.
_NAMED = 4


@dataclass(frozen=True)
class Budget:
    """A limit of time.

    Attributes:
        seconds: How long.
        began: From when on [s].
        clock: Returns the time [s].
    """

    seconds: float
    began: float
    clock: Callable[[], float] = time.monotonic

    def allows(self, expected: Span | None) -> bool:
        """Returns whether work that is expected to take so long still fits; what nothing is known of is begun."""
        return expected is None or self.clock() - self.began + expected.middle <= self.seconds


def in_order(entries: Sequence[Entry], by_model: bool) -> list[Entry]:
    """Returns cells such that those that come first make a useful table.

    The unscaled first model is what all others are judged against, so all of its cells come first, and show how long each
    kind takes. The others follow kind by kind, the cheapest kind first and all methods in turn: what is missing in the end
    is missing in every row alike.

    Args:
        entries: Cells in the order of a table.
        by_model: Whether all cells of a model come before those of the next, so that its weights load once.
    """
    costs: dict[str, float] = defaultdict(float)
    for _, cell in entries:
        costs[cell.kind] += cell.cost.total
    kinds = sorted(costs, key=lambda kind: costs[kind])

    def place(entry: Entry) -> tuple[int, bool, int, int]:
        number, cell = entry
        is_reference = number == 0 and cell.method == NoScaling.name
        return number if by_model else 0, not is_reference, kinds.index(cell.kind), cell.length

    return sorted(entries, key=place)  # stable: the order of a table where all else is equal


@dataclass(frozen=True)
class LeftOut:
    """What a limit of time leaves out.

    Attributes:
        cells: The cells.
        total: How many cells there are, with those that were measured.
        time: How long those that are left out would take; None if it is not known.
    """

    cells: Sequence[ComparisonCell]
    total: int
    time: Span | None

    @property
    def sentence(self) -> str:
        """How many cells of which rows, and for how long."""
        rows: dict[str, list[str]] = defaultdict(list)
        for cell in self.cells:
            if cell.label not in rows[cell.kind]:
                rows[cell.kind].append(cell.label)
        named = [
            f"{kind} of {', '.join(labels) if len(labels) <= _NAMED else f'{len(labels)} methods'}"
            for kind, labels in rows.items()
        ]
        longer = "" if self.time is None else f", {duration_range(self.time)} more"
        return f"{len(self.cells)} of {self.total} cells are left out: {'; '.join(named)}{longer}."


def spent(budget: Budget, left_out: LeftOut) -> str:
    """Returns what a person is told when the time is spent."""
    return f"--budget {duration(budget.seconds)}: {left_out.sentence} The same command goes on with them, with or without a budget."
