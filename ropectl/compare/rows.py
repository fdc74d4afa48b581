"""The rows of a comparison, made from the records of its cells: one per model and method, and one per trained method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.judging.verdicts import Reached, models_verdicts, reached, short_delta, uses_verdicts
from ropectl.evaluate.retrieval.passkey_cells import by_length, scored_length
from ropectl.records import (
    MethodRow,
    PasskeyCell,
    PasskeyLength,
    PerplexityPoint,
    PlannedModel,
    RanOn,
    Reach,
    TrainingSummary,
)
from ropectl.records.reading import read_as
from ropectl.rope.frequencies import reach_tokens
from ropectl.rope.method import ScalingMethod


@dataclass(frozen=True)
class CellResult:
    """A cell that was measured.

    Attributes:
        kind: ``prefix``, ``tail`` or ``passkey``.
        lengths: Contexts that it answers for [tokens].
        record: Its record; a failed cell's holds its error.
        training: Id of the training whose weights were measured; None for the model as it is given.
    """

    kind: str
    lengths: Sequence[int]
    record: Mapping[str, Any]
    training: str | None = None

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The type, message and length of a failure; None if there was none."""
        return self.record.get("error")

    @property
    def found(self) -> Mapping[str, Any]:
        """The results; those of a failed cell are below the length at which it failed."""
        result: Mapping[str, Any] = self.record.get("result", {})
        return result


def ran_on(rows: Sequence[RowResults]) -> RanOn:
    """Returns what the first model ran on, as its cells say; nothing where they are older than that."""
    told = (cell.record.get("ran_on") for row in rows for cell in row.cells)
    return next((read_as(RanOn, each, "a cell", "compare-methods") for each in told if each), RanOn())


@dataclass(frozen=True)
class RowResults:
    """The results that a row is made of.

    Attributes:
        model: The model.
        method: The method.
        cells: The cells that were measured.
        training: The training whose weights were measured; None for the model as it is given.
        covered: Positions of that training [tokens]; 0 without one.
        errors: Failures outside of cells.
    """

    model: PlannedModel
    method: ScalingMethod
    cells: Sequence[CellResult] = ()
    training: TrainingSummary | None = None
    covered: int = 0
    errors: Sequence[str] = ()

    def points(self, kind: str) -> list[PerplexityPoint]:
        """Returns the perplexity points of a protocol."""
        points = [point for cell in self._of(kind) for point in cell.found.get("points", ())]
        return [read_as(PerplexityPoint, point, "a cell", "compare-methods") for point in points]

    @property
    def passkey(self) -> list[PasskeyLength]:
        """Retrieval by length; a length counts only where all of it was measured."""
        cells = self._of("passkey")
        found = [PasskeyCell(**entry) for cell in cells for entry in cell.found.get("cells", ())]
        missing = {n for cell in cells if cell.error for n in cell.lengths if n >= cell.error["length"]}
        return by_length([entry for entry in found if entry.length not in missing])

    def row(self, baseline: RowResults, config: CompareConfig, clusters: Sequence[int] | None = None) -> MethodRow:
        """Returns the row.

        Args:
            baseline: The first model without scaling, as it is given, against which verdicts are made.
            config: The settings; they hold the tolerances of verdicts.
            clusters: The document of each scored unit; a document of its own by default.
        """
        trained = baseline.model.geometry.original_max_position_embeddings
        comparable = self.model.same_tokens
        base_at_trained = next((p for p in baseline.points("tail") if p.context_length == trained), None)
        prefix, tail, passkey = self.points("prefix"), self.points("tail"), self.passkey
        complete = all(cell.error is None for cell in self._of("passkey"))
        models, uses = Reached(None, None, []), Reached(None, None, [])
        if comparable:
            models = reached(models_verdicts(tail, base_at_trained, config.tolerance, clusters), trained)
        if complete:
            uses = reached(uses_verdicts(map(scored_length, passkey), config.uses_accuracy), trained)
        reach = Reach(
            self._computes(), models.certain, uses.certain, models.possible, uses.possible, models.at, uses.at
        )
        delta = short_delta(prefix, baseline.points("prefix"), trained, clusters) if comparable else None
        failed = [(cell.kind, cell.error) for cell in self.cells if cell.error is not None]
        return MethodRow(
            model=self.model.name,
            method=str(self.method),
            perplexity=prefix,
            tail=tail,
            passkey=passkey,
            reach=reach,
            short_delta=None if delta is None else delta.value,
            seconds=round(sum(cell.record["seconds"] for cell in self.cells), 3),
            errors=[*self.errors, *(f"{kind} {e['length']}: {e['message']}" for kind, e in failed)],
            training=self.training,
            short_delta_ci_low=None if delta is None else delta.ci_low,
            short_delta_ci_high=None if delta is None else delta.ci_high,
        )

    def _of(self, kind: str) -> list[CellResult]:
        return [cell for cell in self.cells if cell.kind == kind]

    def _computes(self) -> int | None:
        """Returns the formula's reach; for a method that follows the length, the longest evaluated length that it covers."""
        geometry = self.model.geometry
        if not self.method.depends_on_seq_len:
            limit = reach_tokens(geometry, self.method.frequencies(geometry))
            # Further training shows every pair the rotations of all its positions, in addition to those seen before.
            return limit if limit is None else max(limit, self.covered)
        reached = geometry.original_max_position_embeddings
        for length in sorted({length for cell in self.cells for length in cell.lengths}):
            limit = reach_tokens(geometry, self.method.frequencies(geometry, length))
            if limit is None or limit >= length:
                reached = max(reached, length)
        return reached
