"""From the records of a comparison's cells to its rows: one per model and method, and one per trained method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ropectl.evaluate.retrieval.passkey_cells import by_length
from ropectl.evaluate.verdicts import models_length, short_delta, uses_length
from ropectl.records import MethodRow, PasskeyCell, PasskeyLength, PerplexityPoint, Reach, TrainingSummary
from ropectl.records.reading import read_as
from ropectl.rope.frequencies import reach_tokens
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod


class MeasuredModel(Protocol):
    """What a row has to know of its model."""

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def geometry(self) -> RopeGeometry:
        """What it was trained with."""

    @property
    def same_tokens(self) -> bool:
        """Whether it reads the text in the first model's tokens."""


class MeasuredCell(Protocol):
    """What a row has to know of a cell."""

    @property
    def kind(self) -> str:
        """``prefix``, ``tail`` or ``passkey``."""

    @property
    def lengths(self) -> Sequence[int]:
        """Contexts that it answers for [tokens]."""

    @property
    def length(self) -> int:
        """The longest of them [tokens]."""

    @property
    def training(self) -> str | None:
        """Id of the training whose weights are measured; None for the model as it is given."""


class Tolerances(Protocol):
    """What verdicts allow."""

    @property
    def tolerance(self) -> float:
        """Loss that still counts as modelled [nats a token]."""

    @property
    def uses_accuracy(self) -> float:
        """Passkey accuracy that counts as used."""


@dataclass(frozen=True)
class Measured:
    """What there is of one row.

    Attributes:
        subject: The model.
        method: The method.
        cells: Its cells.
        records: Their records, in the same order; a failed cell's holds its error.
        training: The training behind it; None for the model as it is given.
        covered: Positions of that training [tokens]; 0 without one.
        errors: What else went wrong.
    """

    subject: MeasuredModel
    method: ScalingMethod
    cells: Sequence[MeasuredCell] = ()
    records: Sequence[dict[str, Any]] = ()
    training: TrainingSummary | None = None
    covered: int = 0
    errors: Sequence[str] = field(default=())

    def points(self, kind: str) -> list[PerplexityPoint]:
        """Returns the perplexity points of a protocol."""
        results = [record["result"] for cell, record in self._pairs(kind) if "result" in record]
        return [
            read_as(PerplexityPoint, point, "a cell", "compare-methods")
            for result in results
            for point in result["points"]
        ]

    @property
    def passkey(self) -> list[PasskeyLength]:
        """Retrieval by length; a length counts only where all of it was measured."""
        pairs = self._pairs("passkey")
        found = [PasskeyCell(**entry) for _, record in pairs for entry in record.get("result", {}).get("cells", ())]
        failed = [(cell, record["error"]["length"]) for cell, record in pairs if "error" in record]
        missing = {length for cell, first in failed for length in cell.lengths if length >= first}
        return by_length([entry for entry in found if entry.length not in missing])

    def row(self, baseline: Measured, config: Tolerances) -> MethodRow:
        """Returns the row.

        Args:
            baseline: The first model without scaling, as it is given, against which verdicts are made.
            config: Tolerances of the verdicts.
        """
        trained = baseline.subject.geometry.original_max_position_embeddings
        comparable = self.subject.same_tokens
        base_at_trained = next((p for p in baseline.points("tail") if p.context_length == trained), None)
        prefix, tail, passkey = self.points("prefix"), self.points("tail"), self.passkey
        retrieved = [(entry.length, entry.accuracy, entry.trials) for entry in passkey]
        complete = all("error" not in record for _, record in self._pairs("passkey"))
        reach = Reach(
            computes=self._computes(),
            models=models_length(tail, base_at_trained, config.tolerance, trained) if comparable else None,
            uses=uses_length(retrieved, config.uses_accuracy, trained) if complete else None,
        )
        failed = [(c.kind, r["error"]) for c, r in zip(self.cells, self.records, strict=True) if "error" in r]
        return MethodRow(
            model=self.subject.name,
            method=str(self.method),
            perplexity=prefix,
            tail=tail,
            passkey=passkey,
            reach=reach,
            short_delta=short_delta(prefix, baseline.points("prefix"), trained) if comparable else None,
            seconds=round(sum(record["seconds"] for record in self.records), 3),
            errors=[*self.errors, *(f"{kind} {e['length']}: {e['message']}" for kind, e in failed)],
            training=self.training,
        )

    def _pairs(self, kind: str) -> list[tuple[MeasuredCell, dict[str, Any]]]:
        return [pair for pair in zip(self.cells, self.records, strict=True) if pair[0].kind == kind]

    def _computes(self) -> int | None:
        """The formula's reach; for a method that follows the length, the longest evaluated length it covers itself."""
        geometry = self.subject.geometry
        if not self.method.depends_on_seq_len:
            limit = reach_tokens(geometry, self.method.frequencies(geometry))
            # Further training shows every pair the rotations of all its positions, beside those seen before.
            return limit if limit is None else max(limit, self.covered)
        reached = geometry.original_max_position_embeddings
        for length in sorted({length for cell in self.cells for length in cell.lengths}):
            limit = reach_tokens(geometry, self.method.frequencies(geometry, length))
            if limit is None or limit >= length:
                reached = max(reached, length)
        return reached


def method_rows(measured: Sequence[Measured], config: Tolerances) -> list[MethodRow]:
    """Returns the rows in order; the first is the first model without scaling, as it is given.

    Args:
        measured: What there is of each row.
        config: Tolerances of the verdicts.
    """
    return [entry.row(measured[0], config) for entry in measured]
