"""Which sections a page has: those of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ropectl.report.page.blocks import Block, Figures, Section
from ropectl.report.page.comparison import table_section, verdict_section
from ropectl.report.page.downloads import downloads_section
from ropectl.report.page.figures import curve_drawings, figures, joint_drawings, record_drawings
from ropectl.report.page.finetune import finetune_command, finetune_sections, run_sections
from ropectl.report.page.joint import joint_table
from ropectl.report.page.methods import methods_section
from ropectl.report.page.protocol import (
    commands_section,
    comparison_protocol,
    environment_section,
    errors_section,
    measurement_commands,
)
from ropectl.report.page.render import Page
from ropectl.report.page.singles import (
    harness_sections,
    inspection_sections,
    method_section,
    passkey_sections,
    perplexity_sections,
    tasks_sections,
)
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

_SINGLES: Mapping[str, Callable[[Mapping[str, Any]], list[Section]]] = {
    "perplexity": perplexity_sections,
    "passkey": passkey_sections,
    "tasks": tasks_sections,
    "inspection": inspection_sections,
    "harness": harness_sections,
}


def make_page(runs: Sequence[Run]) -> Page:
    """Returns the page of one run, or of several side by side."""
    if len(runs) == 1:
        run = runs[0]
        return Page(_title(run), _subtitle(run), [("", section) for section in _sections(run, "")])
    joint: list[Block] = [*joint_table(runs)]
    drawn = figures(joint_drawings({run.name: run.typed for run in runs if run.kind != "run"}), "joint-")
    contents = [("", Section("Side by side", "joint", [*joint, *([drawn] if drawn else [])]))]
    for number, run in enumerate(runs, 1):
        prefix = f"run-{number}-"
        contents.append((prefix, Section(run.name, "run", _sections(run, prefix), run.kind)))
    return Page(f"{len(runs)} runs side by side", ", ".join(run.name for run in runs), contents)


def _title(run: Run) -> str:
    model = str(run.record.get("model") or _settings(run).get("model") or run.name)
    return _TITLES[run.kind].format(model=model.rstrip("/").rpartition("/")[2] or model)


def _settings(run: Run) -> Mapping[str, Any]:
    settings: Mapping[str, Any] = run.record.get("settings") or {}
    return settings


def _subtitle(run: Run) -> str:
    record = run.record
    geometry = record.get("geometry") or {}
    parts = [str(record.get("model") or "")]
    if run.kind != "comparison" and record.get("method"):
        parts.append(short_spec(str(record["method"])))
    if geometry:
        parts.append(f"trained length L = {geometry['original_max_position_embeddings']:,} tokens")
        parts.append(f"rotary dimensions {geometry['rotary_dim']}, base {geometry['rope_theta']:g}")
    if isinstance(record.get("target_length"), int):
        parts.append(f"target L\u2032 = {record['target_length']:,} tokens")
    return "; ".join(part for part in parts if part)


def _sections(run: Run, prefix: str) -> list[Section]:
    if run.kind == "comparison":
        return _comparison(run, prefix)
    drawings = [] if run.kind == "run" else record_drawings(run.typed)
    drawings += [drawing for found in curve_drawings(run).values() for drawing in found]
    drawn = figures(drawings, f"{prefix}fig-")
    middle = [Section("Figures", "figures", [drawn])] if drawn else []
    if run.kind in ("finetune", "run"):
        first, *rest = (finetune_sections if run.kind == "finetune" else run_sections)(run.record, run.lines)
        command = finetune_command(run.record)
        rest += [command] if command else []
    else:
        first, *rest = _SINGLES[run.kind](run.record)
    if run.kind in ("perplexity", "passkey", "tasks"):
        rest.append(measurement_commands(run.kind, run.record))
    about = [method_section(run.record)] if isinstance(run.record.get("method"), str) and run.kind != "harness" else []
    environment = [environment_section(run.record)] if run.kind != "inspection" else []
    return [first, *middle, *rest[:1], *about, *rest[1:], *environment, downloads_section(run)]


def _comparison(run: Run, prefix: str) -> list[Section]:
    record, folder = run.record, run.place if run.place.is_dir() else _folder_of(run)
    drawn = figures(record_drawings(run.typed), f"{prefix}fig-")
    curves: dict[str, Figures] = {}
    ids = [row["training"]["id"] for row in record["rows"] if row["training"]]
    for number, (name, drawings) in enumerate(curve_drawings(run).items()):
        found = figures(drawings, f"{prefix}curve-{number}-")
        if found:
            curves.update({training: found for training in ids if training[:8] == name})
    sections = [verdict_section(record, folder), table_section(record)]
    if drawn:
        sections.append(Section("Figures", "figures", [drawn]))
    sections += [methods_section(record, curves), comparison_protocol(record), environment_section(record)]
    sections.append(commands_section(record, folder))
    errors = errors_section(record, folder)
    return [*sections, *([errors] if errors else []), downloads_section(run)]


def _folder_of(run: Run) -> Path | None:
    """The run folder around a comparison's own file; None for a copy elsewhere."""
    return run.place.parent if (run.place.parent / "cells").is_dir() else None
