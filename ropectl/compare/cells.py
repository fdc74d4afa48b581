"""A cell of a comparison: settings that name it, a cost, and a measurement."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ropectl.evaluate.cost import Advance
from ropectl.records import PasskeyCell, PerplexityPoint, to_json
from ropectl.rope.method import short_spec
from ropectl.runs import RunFolder, content_id
from ropectl.timing.operations import Cost

#: Takes the model, what is told of its passes, and some of the cell's lengths; returns records.
Measure = Callable[[Any, Advance, Sequence[int]], Sequence[Any]]

_POINTS, _CELLS = ("points", PerplexityPoint, "context_length"), ("cells", PasskeyCell, "length")

#: The key of a cell's records, by kind; their type; and the field that holds their length.
_RESULTS: dict[str, tuple[str, type[Any], str]] = {"prefix": _POINTS, "tail": _POINTS, "passkey": _CELLS}


@dataclass(frozen=True)
class ComparisonCell:
    """A measurement of one method.

    Attributes:
        method: Method spec.
        kind: ``prefix``, ``tail`` or ``passkey``.
        lengths: Contexts that it answers for [tokens].
        settings: All that decides the result; its hash names the record.
        tokens: Tokens that go through the model.
        cost: Passes and operations.
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

    def outcome(self, model: Any, advance: Advance) -> dict[str, Any]:
        """Measures all lengths at once; if that fails, one after the other up to the one that fails on its own.

        A length that needs too much memory must not cost those that do not, nor a failed cell the others.

        Returns:
            ``result``; or ``error``, with the ``result`` of the shorter lengths if there are any.
        """

        def measured(lengths: Sequence[int]) -> list[Any]:
            return [to_json(record) for record in self.measure(model, advance, lengths)]

        name, ordered = _RESULTS[self.kind][0], sorted(self.lengths)
        try:
            return {"result": {name: measured(ordered)}}
        except Exception as error:  # whatever a model raises
            if len(ordered) == 1:
                return self.failure(error)
        found: list[Any] = []
        for length in ordered:
            empty_caches()
            try:
                found += measured([length])
            except Exception as error:
                return {**self.failure(error, length), **({"result": {name: found}} if found else {})}
        return {"result": {name: found}}

    def failure(self, cause: Exception, length: int | None = None) -> dict[str, Any]:
        """Returns the outcome of a cell that failed.

        Args:
            cause: Why.
            length: Where [tokens]; None if nothing could be measured at all.
        """
        error = {"type": type(cause).__name__, "message": str(cause), "length": length or min(self.lengths)}
        return {"error": error}

    def record_in(self, folder: RunFolder, failed: bool = False) -> dict[str, Any] | None:
        """Returns the record of this cell in a run folder; None if there is none, or one that is damaged.

        Args:
            folder: The run folder.
            failed: Whether the record of a failure counts.
        """
        record = folder.read_cell(self.settings, failed)
        return record if record is not None and self._is_mine(record) else None

    def _is_mine(self, record: Mapping[str, Any]) -> bool:
        """Returns whether a file that parses is a record of this cell, with everything that a row is made of."""
        try:
            (name, kind, length), is_id = _RESULTS[self.kind], record["id"] == content_id(self.settings)
            entries = record["result"][name] if "result" in record else []
            found = {getattr(kind(**entry), length) for entry in entries}
            first_missing = record["error"]["length"] if "error" in record else self.length + 1
            wanted = {length for length in self.lengths if length < first_missing}
            return bool(is_id and found == wanted and math.isfinite(record["seconds"]))
        except (KeyError, TypeError, ValueError):
            return False

    def after(self, training: str, settings: Mapping[str, Any]) -> ComparisonCell:
        """Returns the same measurement on tuned weights.

        Args:
            training: Id of the training.
            settings: Settings that tell its records from all others.
        """
        return replace(self, training=training, settings={**self.settings, **settings})


def empty_caches() -> None:
    """Frees the memory that finished work left behind, before more is asked for."""
    gc.collect()
    if torch.accelerator.is_available():
        torch.accelerator.empty_cache()
