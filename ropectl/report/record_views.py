"""The view of each kind of record that a report can be made of: the one table from types to views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.printable import printable
from ropectl.records import (
    ComparisonRecord,
    FinetuneRecord,
    HarnessRecord,
    InspectionRecord,
    MetricsLine,
    PasskeyRecord,
    PerplexityRecord,
    RuntimeCheckRecord,
    TasksRecord,
    UnfinishedTraining,
)
from ropectl.records.reading import AnyRecord
from ropectl.report.document import Part, View
from ropectl.report.tables.words import model_names
from ropectl.report.views import (
    compare_methods,
    eval_passkey,
    eval_perplexity,
    eval_tasks,
    finetune,
    harness_results,
    inspect,
    verify_runtime,
)
from ropectl.rope.method import short_spec

VIEWS: Mapping[type, View] = {
    ComparisonRecord: compare_methods.VIEW,
    PerplexityRecord: eval_perplexity.VIEW,
    PasskeyRecord: eval_passkey.VIEW,
    TasksRecord: eval_tasks.VIEW,
    InspectionRecord: inspect.VIEW,
    FinetuneRecord: finetune.VIEW,
    HarnessRecord: harness_results.VIEW,
    RuntimeCheckRecord: verify_runtime.VIEW,
    UnfinishedTraining: finetune.UNFINISHED,
}


@dataclass(frozen=True)
class ShownRecord:
    """A record as writers of files take it.

    Attributes:
        view: The way it is shown.
        record: The record.
        metrics: Those of its training.
        run: Name of the run that it is of, where there are several.
    """

    view: View
    record: Any
    metrics: Sequence[MetricsLine] = ()
    run: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "run", printable(self.run))

    def parts(self) -> list[Part]:
        """Returns all tables and sentences, with the course of a training."""
        return [*self.view.parts(self.record), *finetune.course_parts(self.record, self.metrics)]

    @property
    def about(self) -> str:
        """What the record is of, in a line."""
        return printable(about_record(self.record))


def view_of(record: AnyRecord) -> View:
    """Returns the way a record is shown."""
    return VIEWS[type(record)]


def model_of(record: Any) -> str:
    """Returns the model that a record is of, as the user wrote it; empty where it names none."""
    named = record.settings if isinstance(record, UnfinishedTraining) else {"model": getattr(record, "model", None)}
    return str(named.get("model") or "")


def method_of(record: Any) -> str:
    """Returns the method that a record is of; empty where it is of several, or names none."""
    if isinstance(record, ComparisonRecord):
        return ""
    named = record.settings if isinstance(record, UnfinishedTraining) else {"method": getattr(record, "method", None)}
    return short_spec(str(named["method"])) if named.get("method") else ""


def about_record(record: Any) -> str:
    """Returns what a record is of: model and method, the trained length, the length that was asked for, the text."""
    names = record.models if isinstance(record, ComparisonRecord) else []
    model = ", ".join(model_names(names).values()) if len(names) > 1 else _place(model_of(record))
    parts = [f"Model{'s' if len(names) > 1 else ''} {model}" if model else "", method_of(record)]
    geometry, target = getattr(record, "geometry", None), getattr(record, "target_length", None)
    if geometry is not None:
        parts.append(f"trained length L = {geometry.original_max_position_embeddings:,} tokens")
    if target is not None:
        parts.append(f"target {target:,} tokens")
    if text := getattr(record, "text", ""):
        parts.append(f"text {_place(text)}")
    return "; ".join(filter(None, parts))


def _place(name: str) -> str:
    """Returns what is named, without the folders of this machine that it is in."""
    return name.rstrip("/").rpartition("/")[2] if name.startswith(("/", ".", "~")) else name
