"""Collects the subjects of figures from records of every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ropectl.data.units import drawn_unit, unit_name
from ropectl.records import (
    ComparisonRecord,
    FinetuneRecord,
    HarnessRecord,
    InspectionRecord,
    MethodRow,
    PasskeyRecord,
    PerplexityRecord,
    RuntimeCheckRecord,
    TasksRecord,
    UnfinishedTraining,
)
from ropectl.records.reading import AnyRecord
from ropectl.report.figures.subjects import PREFIX, TAIL, Evidence, Subject
from ropectl.report.tables.words import row_names
from ropectl.rope.method import short_spec

#: Where a record has more rows, figures show the first ones.
MAX_SUBJECTS = 40


def evidence_of(record: AnyRecord) -> Evidence:
    """Returns what the figures of one record are drawn from."""
    if isinstance(record, HarnessRecord | RuntimeCheckRecord | UnfinishedTraining):
        return Evidence([])
    same = not isinstance(record, ComparisonRecord) or record.same_tokens
    remarks = () if same else ("The models read the text in different tokens; bits per byte can be compared.",)
    return Evidence(_subjects(record), same, remarks, *_units([record]), record.geometry, _target(record))


def evidence_of_runs(records: Mapping[str, AnyRecord]) -> Evidence:
    """Returns what the figures of several records are drawn from; remarks say why their numbers may not compare.

    Args:
        records: By the name of the run, which every curve's name begins with.
    """
    subjects: list[Subject] = []
    for run, record in records.items():
        found = evidence_of(record).subjects
        if isinstance(record, PerplexityRecord):  # else the unscaled model would be there once for every run
            found = found[-1:]
        subjects += [replace(s, name=f"{run}: {s.name}", family=f"{run}\0{s.family}") for s in found]
    comparisons = [record for record in records.values() if isinstance(record, ComparisonRecord)]
    models = {record.model for record in records.values() if not isinstance(record, UnfinishedTraining)}
    same = len(models) <= 1 and all(record.same_tokens for record in comparisons)
    remarks = []
    if not same:
        remarks.append("The models may read text in different tokens; bits per byte can be compared.")
    measured = [record for record in records.values() if isinstance(record, ComparisonRecord | PerplexityRecord)]
    if len({record.manifest.tokens_sha256 for record in measured}) > 1:
        remarks.append("The runs read different text: levels do not compare, shapes do.")
    return Evidence(subjects[:MAX_SUBJECTS], same, remarks, *_units(list(records.values())))


def _units(records: Sequence[AnyRecord]) -> tuple[str, str]:
    """Returns what was scored and what intervals are over, in the singular; ``text`` where records differ."""
    manifests = [record.manifest for record in records if isinstance(record, ComparisonRecord | PerplexityRecord)]
    scored = {unit_name(manifest.split) for manifest in manifests}
    drawn = {drawn_unit(manifest.split, manifest.clusters) for manifest in manifests}
    return _only(scored), _only(drawn)


def _only(units: set[str]) -> str:
    return units.pop() if len(units) == 1 else "text"


_Drawn = ComparisonRecord | PerplexityRecord | PasskeyRecord | TasksRecord | InspectionRecord | FinetuneRecord


def _subjects(record: _Drawn) -> list[Subject]:
    trained = record.geometry.original_max_position_embeddings
    if isinstance(record, ComparisonRecord):
        rows = record.rows[:MAX_SUBJECTS]
        return [
            replace(_row(row), name=name, trained_length=trained) for row, name in zip(rows, _names(rows), strict=True)
        ]
    subject = Subject(short_spec(record.method), record.method, record.method, trained_length=trained)
    if isinstance(record, PerplexityRecord):
        measured = replace(subject, points={record.protocol: record.points}, short_delta=record.short_delta)
        unscaled = Subject("none", family="none", trained_length=trained, points={record.protocol: record.unscaled})
        return [unscaled, measured] if record.unscaled and record.method != "none" else [measured]
    if isinstance(record, PasskeyRecord):
        return [replace(subject, passkey=record.lengths, grid=record.grid)]
    if isinstance(record, TasksRecord):
        return [replace(subject, tasks={result.task: result.lengths for result in record.tasks[:MAX_SUBJECTS]})]
    return [subject]


def _names(rows: Sequence[MethodRow]) -> list[str]:
    """Returns a name for each row; equal names are numbered."""
    names = row_names(rows) if rows else []
    return [f"{name} #{names[:i].count(name) + 1}" if name in names[:i] else name for i, name in enumerate(names)]


def _row(row: MethodRow) -> Subject:
    return Subject(
        name="",
        method=row.method,
        family=f"{row.model}\0{row.method}",
        tuned=row.training is not None,
        points={PREFIX: row.perplexity, TAIL: row.tail},
        passkey=row.passkey,
        short_delta=row.short_delta,
        training_tokens=row.training.tokens if row.training else None,
        uses=row.reach.uses,
    )


def _target(record: _Drawn) -> int | None:
    """Returns L' as recorded; for an evaluation, the length that its factor gives."""
    if isinstance(record, ComparisonRecord | InspectionRecord | FinetuneRecord):
        return record.target_length
    factor = record.manifest.config.get("factor")
    return record.geometry.target_length(factor) if isinstance(factor, int | float) else None
