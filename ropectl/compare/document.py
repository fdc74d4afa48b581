"""The JSON document of a comparison, and the place where it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ropectl.compare.plan import Plan
from ropectl.compare.recipe import Recipe
from ropectl.compare.rows import RowResults, method_rows
from ropectl.compare.verdict import comparison_verdict, pick_method
from ropectl.evaluate.config import CompareConfig
from ropectl.records import ComparisonFrame, ComparisonManifest, ComparisonRecord, MeasuredCell
from ropectl.reporter import Reporter
from ropectl.runs import command_line, content_id, package_versions


def comparison_document(
    plan: Plan, recipe: Recipe | None, measured: Sequence[RowResults], num_targets: int
) -> ComparisonRecord:
    """Returns the record of a comparison.

    Args:
        plan: What was compared.
        recipe: How methods were trained; None if none was.
        measured: What each row is made of.
        num_targets: K of protocol ``tail``.
    """
    rows = method_rows(measured, plan.config)
    pick = pick_method(rows)
    cells = [cell for entry in measured for cell in _cells(entry)]
    return ComparisonRecord(
        **vars(comparison_frame(plan)),
        rows=rows,
        pick=pick,
        verdict=comparison_verdict(rows, pick, plan.target_length),
        manifest=comparison_manifest(plan, recipe, num_targets, cells),
    )


def comparison_frame(plan: Plan) -> ComparisonFrame:
    """Returns what is known of a comparison before anything is measured."""
    config, base = plan.config, plan.base
    return ComparisonFrame(
        model=config.model,
        models=[subject.name for subject in plan.subjects],
        geometry=base.setup.geometry,
        factor=base.setup.factor,
        factors=list(config.all_factors),
        target_length=plan.target_length,
        text=config.text,
        lengths=list(plan.lengths),
        same_tokens=all(subject.same_tokens for subject in plan.subjects),
    )


def comparison_manifest(
    plan: Plan, recipe: Recipe | None, num_targets: int, cells: Sequence[MeasuredCell]
) -> ComparisonManifest:
    """Returns what is needed to make a comparison again.

    Args:
        plan: What is compared.
        recipe: How methods are trained; None if none is.
        num_targets: K of protocol ``tail``.
        cells: Its cells.
    """
    base = plan.base
    return ComparisonManifest(
        command=command_line(),
        config=plan.config.model_dump(mode="json"),
        finetune=recipe.to_json() if recipe else None,
        versions=package_versions(),
        bos_token_id=base.setup.bos_token_id,
        documents=[document.name for document in base.documents.documents],
        tokens_sha256=base.documents.fingerprint(),
        tail_targets_per_document=num_targets,
        existing={subject.name: str(subject.setup.source.rope.method) for subject in plan.subjects},
        cells=list(cells),
    )


def _cells(entry: RowResults) -> list[MeasuredCell]:
    model, method = entry.model.name, str(entry.method)
    return [
        MeasuredCell(cell.record["id"], model, method, cell.training, cell.kind, max(cell.lengths))
        for cell in entry.cells
    ]


def keep_other(path: Path, record: dict[str, Any], reporter: Reporter) -> None:
    """Puts an earlier comparison of other settings in the same folder aside, under a name of its own."""
    try:
        earlier = _asked_for(json.loads(path.read_text())["manifest"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if earlier != _asked_for(record["manifest"]):
        name = content_id(
            json.dumps(earlier, sort_keys=True)
        )  # of the text: an old file may hold NaN, which is no JSON
        aside = path.with_name(f"{path.stem}-{name[:8]}{path.suffix}")
        path.replace(aside)
        reporter.note(f"{path} held another comparison; it is now {aside.name}.")


def _asked_for(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a comparison was asked for; settings that a record does not know yet stood at their defaults."""
    config = {**CompareConfig().model_dump(mode="json"), **manifest["config"]}
    return {**config, "finetune": manifest.get("finetune")}
