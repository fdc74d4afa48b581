"""What there is of a comparison that has not come to its end, put together from its records alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ropectl.compare.plan_file import PLAN_FILE
from ropectl.compare.rows import Measured
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.records import ComparisonFrame, ComparisonRecord, MethodRow, PlanRecord, TrainingSummary, Unfinished
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runs import CELLS_FOLDER, content_id

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class _Model:
    """A model as the plan tells of it."""

    name: str
    geometry: RopeGeometry
    same_tokens: bool


@dataclass(frozen=True)
class _Cell:
    """A cell as its record, or the plan, tells of it."""

    kind: str
    lengths: Sequence[int]
    training: str | None = None

    @property
    def length(self) -> int:
        return max(self.lengths)


@dataclass(frozen=True)
class _Tolerances:
    tolerance: float
    uses_accuracy: float


@dataclass(frozen=True)
class _Part:
    """A row to come: what is there, and how many cells are not."""

    measured: Measured
    missing: int
    lacks_passkeys: bool

    def row(self, baseline: Measured, tolerances: _Tolerances) -> MethodRow:
        """The row so far; use is judged only on all lengths."""
        row = self.measured.row(baseline, tolerances)
        return replace(row, reach=replace(row.reach, uses=None)) if self.lacks_passkeys else row


def covers(record: ComparisonRecord, plan: PlanRecord) -> bool:
    """Returns whether a finished comparison is the one that was planned: it has every planned cell and training."""
    done = {cell.id for cell in record.manifest.cells}
    trained = {row.training.id for row in record.rows if row.training}
    return done.issuperset(cell.id for cell in plan.manifest.cells) and trained.issuperset(
        training.id for training in plan.trainings
    )


def comparison_so_far(folder: Path, plan: PlanRecord) -> ComparisonRecord:
    """Returns the record of a comparison that was interrupted, as far as it goes.

    It has no pick, and says how many cells there are, and are missing.

    Args:
        folder: The run folder.
        plan: What was to be measured.

    Raises:
        ConfigError: If the plan's settings or methods mean nothing.
    """
    try:
        config = CompareConfig(**plan.manifest.config)
        parts = _in_order(list(_plain(folder, plan)), list(_tuned(folder, plan)))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ConfigError(
            f"{folder / PLAN_FILE} is no plan of a comparison: {type(error).__name__}: {error}",
            "The command that began the run writes it anew.",
        ) from None
    baseline = parts[0].measured
    found, missing = sum(len(part.measured.records) for part in parts), sum(part.missing for part in parts)
    return ComparisonRecord(
        **{name: getattr(plan, name) for name in ComparisonFrame.__dataclass_fields__},
        rows=[part.row(baseline, _Tolerances(config.tolerance, config.uses_accuracy)) for part in parts],
        verdict=[f"Unfinished: {missing} of {found + missing} cells are still to be measured, so nothing is picked."],
        unfinished=Unfinished(found + missing, missing, [part.missing for part in parts]),
        manifest=plan.manifest,
    )


def _in_order(plain: Sequence[_Part], tuned: Sequence[_Part]) -> list[_Part]:
    """Each trained row behind that of the same method and model as it is given."""
    first = plain[0].measured.subject.name
    ordered = []
    for part in plain:
        ordered.append(part)
        if part.measured.subject.name == first:
            ordered.extend(each for each in tuned if each.measured.method == part.measured.method)
    return ordered


def _plain(folder: Path, plan: PlanRecord) -> Iterator[_Part]:
    for subject in plan.subjects:
        model = _Model(subject.name, subject.geometry, subject.same_tokens)
        for spec in subject.methods:
            own = [c for c in plan.manifest.cells if (c.model, c.method) == (model.name, spec)]
            cells = [_Cell(cell.kind, cell.lengths or [cell.length]) for cell in own]
            records = [_record(folder, cell.id) for cell in own]
            pairs = [(cell, record) for cell, record in zip(cells, records, strict=True) if record is not None]
            lacking = [cell for cell, record in zip(cells, records, strict=True) if record is None]
            measured = Measured(model, parse_method(spec), [c for c, _ in pairs], [r for _, r in pairs])
            yield _Part(measured, len(lacking), any(cell.kind == "passkey" for cell in lacking))


def _tuned(folder: Path, plan: PlanRecord) -> Iterator[_Part]:
    """Rows of tuned weights, whose cells are named after those: found by the training that their records tell of."""
    if not plan.trainings:
        return
    first = plan.subjects[0]
    model = _Model(first.name, first.geometry, True)
    records = [
        record for path in sorted((folder / CELLS_FOLDER).glob("*.json")) if (record := _record(folder, path.stem))
    ]
    for training in plan.trainings:
        own = [r for r in records if (r["settings"].get("training") or {}).get("id") == training.id]
        cells = [_Cell(r["settings"]["kind"], _lengths(r["settings"]), training.id) for r in own]
        measured = Measured(
            model, parse_method(training.method), cells, own, TrainingSummary(training.id), training.covered
        )
        missing = max(0, training.cells - len(own))
        yield _Part(measured, missing, missing > 0)


def _lengths(settings: Mapping[str, Any]) -> list[int]:
    if "lengths" in settings:
        return [int(length) for length in settings["lengths"]]
    return sorted({int(length) for length, _ in settings["points"]})


def _record(folder: Path, name: str) -> dict[str, Any] | None:
    """A whole record of a cell; None where there is none, or one that is damaged, which will be measured again."""
    if not _ID.fullmatch(name):
        return None
    try:
        record = json.loads((folder / CELLS_FOLDER / f"{name}.json").read_text())
        whole = record["id"] == name == content_id(record["settings"]) and ("result" in record or "error" in record)
        return record if whole and isinstance(record["seconds"], int | float) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
