"""A cell of a comparison: settings that name it, a cost, and a measurement, of shorter lengths where all at once fail."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ropectl.evaluate.cost import Cost
from ropectl.records import PasskeyCell, PerplexityPoint, to_json
from ropectl.reporter import Progress
from ropectl.rope.method import short_spec
from ropectl.runs import RunFolder, content_id

#: Takes the model, a progress callback and some of the cell's lengths; returns records.
Measure = Callable[[Any, Progress, Sequence[int]], Sequence[Any]]

#: What the records of a cell are called.
RESULTS = {"prefix": "points", "tail": "points", "passkey": "cells"}

#: What they are, and where each says its length.
_RECORDS: dict[str, tuple[type[Any], str]] = {
    "points": (PerplexityPoint, "context_length"),
    "cells": (PasskeyCell, "length"),
}


@dataclass(frozen=True)
class ComparisonCell:
    """One measurement of one method.

    Attributes:
        method: Method spec.
        kind: ``prefix``, ``tail`` or ``passkey``.
        lengths: Contexts that it answers for [tokens].
        settings: All that decides the result; its hash names the record.
        tokens: Tokens that go through the model.
        cost: Operations.
        window: Most tokens in one forward pass.
        cached: Most tokens whose keys and values are held.
        measure: The measurement.
        training: Id of the training whose weights are measured; None for the model as it is given.
    """

    method: str
    kind: str
    lengths: Sequence[int]
    settings: Mapping[str, Any]
    tokens: int
    cost: Cost
    window: int
    cached: int
    measure: Measure
    training: str | None = None

    @property
    def length(self) -> int:
        """The longest context [tokens]."""
        return max(self.lengths)

    @property
    def label(self) -> str:
        """The cell's name for people."""
        return short_spec(self.method) + (", tuned" if self.training else "")

    def outcome(self, model: Any, progress: Progress) -> dict[str, Any]:
        """Measures; returns ``result``, or ``error`` beside the result of the lengths below the one that failed."""

        def measured(lengths: Sequence[int]) -> list[Any]:
            return [to_json(record) for record in self.measure(model, progress, lengths)]

        name = RESULTS[self.kind]
        try:
            return {"result": {name: measured_up_to_failure(measured, self.lengths)}}
        except PartialFailureError as failure:  # what goes wrong in one cell must not cost the others
            kind, message = type(failure.cause).__name__, str(failure.cause)
            error = {"type": kind, "message": message, "length": failure.length}
            return {"error": error, **({"result": {name: failure.found}} if failure.found else {})}

    def failure(self, cause: Exception) -> dict[str, Any]:
        """Returns the outcome of a cell whose model could not be had."""
        return {"error": {"type": type(cause).__name__, "message": str(cause), "length": min(self.lengths)}}

    def record_in(self, folder: RunFolder, failed: bool = False) -> dict[str, Any] | None:
        """Returns the record of this cell in a run folder; None without one, or with one that says too little to be used.

        Args:
            folder: The run folder.
            failed: Whether the record of a failure is one too.
        """
        record = folder.read_cell(self.settings, failed)
        return record if record is not None and self._is_mine(record) else None

    def _is_mine(self, record: Mapping[str, Any]) -> bool:
        """Returns whether a file that parses is a record of this cell, with everything that a row is made of."""
        try:
            name, is_id = RESULTS[self.kind], record["id"] == content_id(self.settings)
            kind, length = _RECORDS[name]
            found = (
                {getattr(kind(**entry), length) for entry in record["result"][name]} if "result" in record else set()
            )
            first_missing = record["error"]["length"] if "error" in record else self.length + 1
            wanted = {length for length in self.lengths if length < first_missing}
            return bool(is_id and found == wanted and math.isfinite(record["seconds"]))
        except (KeyError, TypeError, ValueError):
            return False

    def after(self, training: str, settings: Mapping[str, Any]) -> ComparisonCell:
        """Returns the same measurement on tuned weights.

        Args:
            training: Id of the training.
            settings: What tells its records from all others.
        """
        return replace(self, training=training, settings={**self.settings, **settings})


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
