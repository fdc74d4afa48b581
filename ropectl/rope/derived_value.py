"""A value that follows from a scaling method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DerivedValue:
    """A value that follows from a method's parameters on a geometry.

    Attributes:
        value: The number, or the two ends of a range.
        unit: Its unit; ``1`` for a plain number.
        meaning: What it says, in a few words.
    """

    value: float | int | list[float | int]
    unit: str
    meaning: str
