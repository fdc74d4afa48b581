"""From the records of a comparison's cells to its rows: one per method, and one per trained method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.reach import models_length, short_delta, uses_length
from ropectl.records import MethodRow, PerplexityPoint, Reach, TrainingSummary, passkey_length_from_json
from ropectl.rope.frequencies import reach_tokens
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

if TYPE_CHECKING:
    from ropectl.compare.cells import Cell


@dataclass(frozen=True)
class Measured:
    """What there is of one row.

    Attributes:
        method: The method.
        cells: Its cells.
        records: Their records, in the same order; a failed cell's holds its error.
        training: The training behind it; None for the model as it is given.
        covered: Positions of that training [tokens]; 0 without one.
        errors: What else went wrong.
    """

    method: ScalingMethod
    cells: Sequence[Cell] = ()
    records: Sequence[dict[str, Any]] = ()
    training: TrainingSummary | None = None
    covered: int = 0
    errors: Sequence[str] = field(default=())

    def points(self, kind: str) -> list[PerplexityPoint]:
        """Returns the perplexity points of a protocol."""
        results = [record["result"] for cell, record in self._pairs(kind) if "result" in record]
        return [PerplexityPoint(**point) for result in results for point in result["points"]]

    def row(self, baseline: Measured, geometry: RopeGeometry, config: CompareConfig) -> MethodRow:
        """Returns the row.

        Args:
            baseline: The unscaled model as it is given, against which verdicts are made.
            geometry: What the model was trained with.
            config: Tolerances of the verdicts.
        """
        trained = geometry.original_max_position_embeddings
        base_at_trained = next((p for p in baseline.points("tail") if p.context_length == trained), None)
        prefix, tail, passkeys = self.points("prefix"), self.points("tail"), self._pairs("passkey")
        passkey = [passkey_length_from_json(record["result"]) for _, record in passkeys if "result" in record]
        complete = all("result" in record for _, record in passkeys)
        reach = Reach(
            computes=self._computes(geometry),
            models=models_length(tail, base_at_trained, config.tolerance),
            uses=uses_length(passkey, config.min_accuracy) if complete else None,
        )
        failed = [(c, r["error"]["message"]) for c, r in zip(self.cells, self.records, strict=True) if "error" in r]
        return MethodRow(
            method=str(self.method),
            perplexity=prefix,
            tail=tail,
            passkey=passkey,
            reach=reach,
            short_delta=short_delta(prefix, baseline.points("prefix"), trained),
            seconds=round(sum(record["seconds"] for record in self.records), 3),
            errors=[*self.errors, *(f"{cell.kind} {cell.length}: {message}" for cell, message in failed)],
            training=self.training,
        )

    def _pairs(self, kind: str) -> list[tuple[Cell, dict[str, Any]]]:
        return [pair for pair in zip(self.cells, self.records, strict=True) if pair[0].kind == kind]

    def _computes(self, geometry: RopeGeometry) -> int | None:
        """The formula's reach; for a method that follows the length, the longest evaluated length it covers itself."""
        if not self.method.depends_on_seq_len:
            limit = reach_tokens(geometry, self.method.frequencies(geometry))
            # Further training shows every pair the rotations of all its positions, beside those seen before.
            return limit if limit is None else max(limit, self.covered)
        reached = geometry.original_max_position_embeddings
        for length in sorted({cell.length for cell in self.cells}):
            limit = reach_tokens(geometry, self.method.frequencies(geometry, length))
            if limit is None or limit >= length:
                reached = max(reached, length)
        return reached


def method_rows(measured: Sequence[Measured], geometry: RopeGeometry, config: CompareConfig) -> list[MethodRow]:
    """Returns the rows in order; the first is the unscaled model as it is given.

    Args:
        measured: What there is of each row.
        geometry: What the model was trained with.
        config: Tolerances of the verdicts.
    """
    return [entry.row(measured[0], geometry, config) for entry in measured]
