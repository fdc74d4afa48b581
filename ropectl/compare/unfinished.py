"""The record of an unfinished comparison, made from the records of its cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ropectl.compare.differences import differences, references
from ropectl.compare.rows import CellResult, RowResults, ran_on
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.json_reading import read_object
from ropectl.output_places import CELLS_FOLDER, PLAN_FILE
from ropectl.records import ComparisonFrame, ComparisonRecord, MethodRow, PlanRecord, TrainingSummary, Unfinished
from ropectl.rope.registry import parse_method
from ropectl.runs import content_id

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class _UnfinishedRow:
    """A row of which cells may be missing.

    Attributes:
        results: The results up to now.
        missing: The number of missing cells.
        lacks_passkeys: Whether some of them measure passkeys.
    """

    results: RowResults
    missing: int
    lacks_passkeys: bool

    def row(self, baseline: RowResults, config: CompareConfig, clusters: Sequence[int] | None) -> MethodRow:
        """Returns the row up to now; use is judged only on all lengths."""
        row = self.results.row(baseline, config, clusters)
        if not self.lacks_passkeys:
            return row
        return replace(row, reach=replace(row.reach, uses=None, uses_possible=None, uses_at=[]))


def unfinished_comparison(folder: Path, plan: PlanRecord) -> ComparisonRecord:
    """Returns the record of a comparison that was interrupted, from the cells that are finished.

    It has no pick, and says how many cells there are and how many are missing.

    Args:
        folder: The run folder.
        plan: The plan of the comparison.

    Raises:
        ConfigError: If the plan's settings or methods have no meaning.
    """
    try:
        config = CompareConfig(**plan.manifest.config)
        rows = _in_order(list(_untrained(folder, plan)), list(_trained(folder, plan)))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ConfigError(
            f"{folder / PLAN_FILE} is not a plan of a comparison: {type(error).__name__}: {error}",
            "The command that began the run writes it again.",
        ) from None
    found, missing = sum(len(row.results.cells) for row in rows), sum(row.missing for row in rows)
    clusters = plan.manifest.clusters or None
    made = [row.row(rows[0].results, config, clusters) for row in rows]
    other_tokens = [model.name for model in plan.subjects if not model.same_tokens]
    trained = plan.geometry.original_max_position_embeddings
    return ComparisonRecord(
        **{name: getattr(plan, name) for name in ComparisonFrame.__dataclass_fields__},
        rows=made,
        differences=differences(made, references(made, None, config.against), trained, clusters, other_tokens),
        verdict=[f"Unfinished: {missing} of {found + missing} cells are still to be measured, so nothing is picked."],
        unfinished=Unfinished(found + missing, missing, [row.missing for row in rows]),
        manifest=replace(plan.manifest, **vars(ran_on([row.results for row in rows]))),
    )


def _in_order(untrained: Sequence[_UnfinishedRow], trained: Sequence[_UnfinishedRow]) -> list[_UnfinishedRow]:
    """Returns all rows, each trained one after that of the same method and model as it is given."""
    first = untrained[0].results.model.name
    ordered = []
    for row in untrained:
        ordered.append(row)
        if row.results.model.name == first:
            ordered.extend(each for each in trained if each.results.method == row.results.method)
    return ordered


def _untrained(folder: Path, plan: PlanRecord) -> Iterator[_UnfinishedRow]:
    """Yields the rows of the models as they are given, whose cells the plan names."""
    for model in plan.subjects:
        for spec in model.methods:
            planned = [cell for cell in plan.manifest.cells if (cell.model, cell.method) == (model.name, spec)]
            records = [(cell, _whole_record(folder, cell.id)) for cell in planned]
            found = [CellResult(cell.kind, cell.lengths or [cell.length], r) for cell, r in records if r is not None]
            lacking = [cell for cell, record in records if record is None]
            results = RowResults(model, parse_method(spec), found)
            yield _UnfinishedRow(results, len(lacking), any(cell.kind == "passkey" for cell in lacking))


def _trained(folder: Path, plan: PlanRecord) -> Iterator[_UnfinishedRow]:
    """Yields the rows of trained weights, which name their cells: found by the training that their records tell of."""
    if not plan.trainings:
        return
    model = plan.subjects[0]
    records = [
        record
        for path in sorted((folder / CELLS_FOLDER).glob("*.json"))
        if (record := _whole_record(folder, path.stem))
    ]
    for training in plan.trainings:
        own = [r for r in records if (r["settings"].get("training") or {}).get("id") == training.id]
        found = [CellResult(r["settings"]["kind"], _lengths(r["settings"]), r, training.id) for r in own]
        summary = TrainingSummary(training.id)
        results = RowResults(model, parse_method(training.method), found, summary, training.covered)
        missing = max(0, training.cells - len(own))
        yield _UnfinishedRow(results, missing, missing > 0)


def _lengths(settings: Mapping[str, Any]) -> list[int]:
    if "lengths" in settings:
        return [int(length) for length in settings["lengths"]]
    return sorted({int(length) for length, _ in settings["points"]})


def _whole_record(folder: Path, name: str) -> dict[str, Any] | None:
    """Returns the record of a cell; None where there is none, or one that is damaged, which will be measured again."""
    if not _ID.fullmatch(name):
        return None
    try:
        record = read_object(folder / CELLS_FOLDER / f"{name}.json")
        whole = record["id"] == name == content_id(record["settings"]) and ("result" in record or "error" in record)
        return record if whole and isinstance(record["seconds"], int | float) else None
    except (ConfigError, ValueError, KeyError, TypeError):
        return None
