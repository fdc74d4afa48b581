"""Measures the lengths below the one that is too much, when all at once fail."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import torch


class PartialFailureError(Exception):
    """A measurement failed at one length; those below it are done.

    Attributes:
        found: What the shorter lengths gave.
        length: Where it failed [tokens].
        cause: Why.
    """

    def __init__(self, found: list[Any], length: int, cause: Exception) -> None:
        super().__init__(str(cause))
        self.found, self.length, self.cause = found, length, cause


def measured_up_to_failure(measure: Callable[[Sequence[int]], list[Any]], lengths: Sequence[int]) -> list[Any]:
    """Returns the records of all lengths, measured at once; where that fails, one after the other.

    A length that needs too much memory must not cost those that do not.

    Args:
        measure: Returns records at some lengths.
        lengths: All of them.

    Raises:
        PartialFailureError: If one fails by itself too; longer ones are not tried.
    """
    ordered = sorted(lengths)
    try:
        return measure(ordered)
    except Exception as error:  # whatever a model raises
        if len(ordered) == 1:
            raise PartialFailureError([], ordered[0], error) from None
    found: list[Any] = []
    for length in ordered:
        gc.collect()
        if torch.accelerator.is_available():
            torch.accelerator.empty_cache()
        try:
            found += measure([length])
        except Exception as error:
            raise PartialFailureError(found, length, error) from None
    return found
