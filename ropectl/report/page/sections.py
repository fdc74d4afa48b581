"""The sections of a page, of one run or of several side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ropectl.records import (
    ComparisonRecord,
    FinetuneRecord,
    HarnessRecord,
    InspectionRecord,
    PasskeyRecord,
    PerplexityRecord,
    TasksRecord,
    UnfinishedTraining,
)
from ropectl.report.blocks import Block, Figures, Page, Section
from ropectl.report.figures.catalog import drawings_of, drawings_of_runs
from ropectl.report.page.compared import table_section, verdict_section
from ropectl.report.page.downloads import downloads_section
from ropectl.report.page.figures import curve_drawings, figures
from ropectl.report.page.measurements import (
    harness_sections,
    inspection_sections,
    method_section,
    passkey_sections,
    perplexity_sections,
    tasks_sections,
)
from ropectl.report.page.method_sections import methods_section
from ropectl.report.page.protocol import (
    commands_section,
    comparison_protocol,
    environment_section,
    errors_section,
    measurement_commands,
)
from ropectl.report.page.side_by_side import joint_tables
from ropectl.report.page.trainings import finetune_command, finetune_sections, run_sections
from ropectl.report.runs_read import Run
from ropectl.rope.method import short_spec

_TITLES = {
    "comparison": "How far {model} reaches",
    "perplexity": "Perplexity of {model}",
    "passkey": "Passkey retrieval of {model}",
    "tasks": "Retrieval tasks on {model}",
    "inspection": "What the rotary embedding of {model} computes",
    "finetune": "Training of {model}",
    "run": "Training of {model}, unfinished",
    "harness": "Ordinary tasks on {model}",
}

#: The sections of a single measurement, by what it is.
_MEASURED: dict[type, Callable[[Any], list[Section]]] = {
    PerplexityRecord: perplexity_sections,
    PasskeyRecord: passkey_sections,
    TasksRecord: tasks_sections,
    InspectionRecord: inspection_sections,
    HarnessRecord: harness_sections,
}


def make_page(runs: Sequence[Run]) -> Page:
    """Returns the page of one run, or of several side by side."""
    if len(runs) == 1:
        run = runs[0]
        return Page(_title(run), _subtitle(run), [("", section) for section in _sections(run, "")])
    records = {run.name: run.record for run in runs if not isinstance(run.record, UnfinishedTraining)}
    drawn = figures(drawings_of_runs(records), "joint-")
    contents = [("", Section("Side by side", "joint", [*joint_tables(runs), *([drawn] if drawn else [])]))]
    for number, run in enumerate(runs, 1):
        prefix = f"run-{number}-"
        contents.append((prefix, Section(run.name, "run", _sections(run, prefix), run.record.kind)))
    return Page(f"{len(runs)} runs side by side", ", ".join(run.name for run in runs), contents)


def _title(run: Run) -> str:
    record = run.record
    model = record.settings.get("model") if isinstance(record, UnfinishedTraining) else record.model
    place = str(model or ("plain numbers" if isinstance(record, InspectionRecord) else run.name))
    return _TITLES[record.kind].format(model=place.rstrip("/").rpartition("/")[2] or place)


def _subtitle(run: Run) -> str:
    record = run.record
    if isinstance(record, UnfinishedTraining):
        return ""
    parts = [record.model or ""]
    if not isinstance(record, ComparisonRecord) and record.method:
        parts.append(short_spec(record.method))
    if not isinstance(record, HarnessRecord):
        geometry = record.geometry
        parts.append(f"trained length L = {geometry.original_max_position_embeddings:,} tokens")
        parts.append(f"rotary dimensions {geometry.rotary_dim}, base {geometry.rope_theta:g}")
    target = getattr(record, "target_length", None)
    if target is not None:
        parts.append(f"target L\u2032 = {target:,} tokens")
    return "; ".join(part for part in parts if part)


def _sections(run: Run, prefix: str) -> list[Section]:
    record = run.record
    if isinstance(record, ComparisonRecord):
        return _comparison(run, record, prefix)
    drawings = [] if isinstance(record, UnfinishedTraining) else drawings_of(record)
    drawings += [drawing for found in curve_drawings(run).values() for drawing in found]
    drawn = figures(drawings, f"{prefix}fig-")
    middle = [Section("Figures", "figures", [drawn])] if drawn else []
    if isinstance(record, UnfinishedTraining):
        first, *rest = run_sections(record, run.metrics)
    elif isinstance(record, FinetuneRecord):
        first, *rest = finetune_sections(record, run.metrics)
        command = finetune_command(record)
        rest += [command] if command else []
    else:
        first, *rest = _MEASURED[type(record)](record)
    if isinstance(record, PerplexityRecord | PasskeyRecord | TasksRecord):
        rest.append(measurement_commands(record))
    method = None if isinstance(record, UnfinishedTraining | HarnessRecord) else record.method
    about = [method_section(method)] if method else []
    environment = [] if isinstance(record, InspectionRecord) else [environment_section(record)]
    return [first, *middle, *rest[:1], *about, *rest[1:], *environment, downloads_section(run)]


def _comparison(run: Run, record: ComparisonRecord, prefix: str) -> list[Section]:
    folder = run.place if run.place.is_dir() else _folder_of(run)
    drawn: list[Block] = [found] if (found := figures(drawings_of(record), f"{prefix}fig-")) else []
    sections = [verdict_section(record, folder), table_section(record)]
    if drawn:
        sections.append(Section("Figures", "figures", drawn))
    curves = _training_curves(run, record, prefix)
    sections += [methods_section(record, curves), comparison_protocol(record), environment_section(record)]
    sections.append(commands_section(record, folder))
    errors = errors_section(record, folder)
    return [*sections, *([errors] if errors else []), downloads_section(run)]


def _training_curves(run: Run, record: ComparisonRecord, prefix: str) -> dict[str, Figures]:
    """Returns the figures of the trainings of a comparison by id; their folders are named by its first digits."""
    curves: dict[str, Figures] = {}
    ids = [row.training.id for row in record.rows if row.training]
    for number, (name, drawings) in enumerate(curve_drawings(run).items()):
        found = figures(drawings, f"{prefix}curve-{number}-")
        if found:
            curves.update({training: found for training in ids if training[:8] == name})
    return curves


def _folder_of(run: Run) -> Path | None:
    """Returns the run folder that a comparison's file is in; None for a copy elsewhere."""
    return run.place.parent if (run.place.parent / "cells").is_dir() else None
