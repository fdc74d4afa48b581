"""The sections of a page, of one run or of several side by side."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from ropectl.records import (
    ComparisonRecord,
    FinetuneRecord,
    HarnessRecord,
    InspectionRecord,
    PasskeyRecord,
    PerplexityRecord,
    RuntimeCheckRecord,
    TasksRecord,
    UnfinishedTraining,
)
from ropectl.report.blocks import Block, Download, Downloads, Figures, Page, Section
from ropectl.report.document import Sentence
from ropectl.report.measured_values import values_of
from ropectl.report.page.compared import table_section, verdict_section
from ropectl.report.page.figures import curve_drawings, figures, joint_drawings, record_drawings
from ropectl.report.page.measurements import (
    harness_sections,
    inspection_sections,
    method_section,
    passkey_sections,
    perplexity_sections,
    runtime_check_sections,
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
from ropectl.report.record_views import method_of, model_of, view_of
from ropectl.report.runs_read import Run
from ropectl.report.writers.csv import values_csv

#: The sections of a single measurement, by what it is.
_MEASURED: dict[type, Callable[[Any], list[Section]]] = {
    PerplexityRecord: perplexity_sections,
    PasskeyRecord: passkey_sections,
    TasksRecord: tasks_sections,
    InspectionRecord: inspection_sections,
    HarnessRecord: harness_sections,
    RuntimeCheckRecord: runtime_check_sections,
}


def make_page(runs: Sequence[Run]) -> Page:
    """Returns the page of one run, or of several side by side."""
    if len(runs) == 1:
        run = runs[0]
        return Page(_title(run), _subtitle(run), [("", section) for section in _sections(run, "")])
    drawn = figures(joint_drawings(runs), "joint-")
    contents = [("", Section("Side by side", "joint", [*joint_tables(runs), *([drawn] if drawn else [])]))]
    for number, run in enumerate(runs, 1):
        prefix = f"run-{number}-"
        contents.append((prefix, Section(run.name, "run", _sections(run, prefix), run.record.kind)))
    return Page(f"{len(runs)} runs side by side", ", ".join(run.name for run in runs), contents)


def _title(run: Run) -> str:
    place = model_of(run.record) or ("plain numbers" if isinstance(run.record, InspectionRecord) else run.name)
    return view_of(run.record).title.format(model=place.rstrip("/").rpartition("/")[2] or place)


def _subtitle(run: Run) -> str:
    record = run.record
    if isinstance(record, UnfinishedTraining):
        return ""
    parts = [record.model or "", method_of(record)]
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
    drawings = [*record_drawings(run), *(each for found in curve_drawings(run).values() for each in found)]
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
    return [first, *middle, *rest[:1], *about, *rest[1:], *environment, _downloads(run)]


def _comparison(run: Run, record: ComparisonRecord, prefix: str) -> list[Section]:
    # A copy of a comparison's file elsewhere has no run folder.
    folder = run.folder if run.place.is_dir() or (run.folder / "cells").is_dir() else None
    drawn: list[Block] = [found] if (found := figures(record_drawings(run), f"{prefix}fig-")) else []
    sections = [verdict_section(record, folder), table_section(record)]
    if drawn:
        sections.append(Section("Figures", "figures", drawn))
    curves = _training_curves(run, record, prefix)
    sections += [methods_section(record, curves), comparison_protocol(record), environment_section(record)]
    sections.append(commands_section(record, folder))
    errors = errors_section(record, folder)
    return [*sections, *([errors] if errors else []), _downloads(run)]


def _training_curves(run: Run, record: ComparisonRecord, prefix: str) -> dict[str, Figures]:
    """Returns the figures of the trainings of a comparison by id; their folders are named by its first digits."""
    curves: dict[str, Figures] = {}
    ids = [row.training.id for row in record.rows if row.training]
    for number, (name, drawings) in enumerate(curve_drawings(run).items()):
        found = figures(drawings, f"{prefix}curve-{number}-")
        if found:
            curves.update({training: found for training in ids if training[:8] == name})
    return curves


def _downloads(run: Run) -> Section:
    """Returns the files of a run as links that hold them."""
    contents = list(run.files)
    if any(values_of(run.record)):
        contents.append(("numbers.csv", values_csv(run.record).encode("utf-8", "backslashreplace")))
    files = [_download(name, content) for name, content in contents]
    text = "Everything on this page is made from these files, which it holds."
    return Section("Records", "records", [Sentence(text), Downloads(files)])


def _download(name: str, content: bytes) -> Download:
    media = {"json": "application/json", "csv": "text/csv"}.get(name.rpartition(".")[2], "text/plain")
    size = f"{len(content) / 1024:,.0f} KiB" if len(content) >= 1024 else f"{len(content)} bytes"
    return Download(name, media, Markup(base64.b64encode(content).decode()), size)
