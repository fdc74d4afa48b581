"""What a piece of work costs: the forward passes it makes, and the operations of each part of a model in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """The cost of some work.

    Attributes:
        passes: Forward passes; each takes a time of its own, however short it is.
        weights: Operations with the weights of the decoder layers.
        attention: Operations of attention.
        head: Operations of the output head.
    """

    passes: float = 0.0
    weights: float = 0.0
    attention: float = 0.0
    head: float = 0.0

    @property
    def total(self) -> float:
        """All operations."""
        return self.weights + self.attention + self.head

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """What takes time at a rate of its own, each a column of a fit."""
        return self.weights, self.attention, self.head, self.passes

    @property
    def whole(self) -> tuple[float, float]:
        """The same with all operations at one rate, for where little was timed."""
        return self.total, self.passes

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.passes + other.passes,
            self.weights + other.weights,
            self.attention + other.attention,
            self.head + other.head,
        )

    def __mul__(self, times: float) -> Cost:
        return Cost(self.passes * times, self.weights * times, self.attention * times, self.head * times)

    def less(self, other: Cost) -> Cost:
        """Returns what is left of it once ``other`` is done; nothing is negative."""
        return Cost(
            max(0.0, self.passes - other.passes),
            max(0.0, self.weights - other.weights),
            max(0.0, self.attention - other.attention),
            max(0.0, self.head - other.head),
        )


#: The cost of no work.
NOTHING = Cost()
