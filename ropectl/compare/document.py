"""The records of a comparison: ``comparison.json``, and before anything is measured ``plan.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.compare.differences import differences, references
from ropectl.compare.plan import Plan
from ropectl.compare.rows import RowResults, ran_on
from ropectl.compare.tuned.recipe import Recipe
from ropectl.compare.verdict import comparison_verdict, pick_method
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.shared_config import number_of_units
from ropectl.json_reading import read_object
from ropectl.output_places import COMPARISON_FILE, PLAN_FILE
from ropectl.records import (
    ComparisonFrame,
    ComparisonManifest,
    ComparisonRecord,
    MeasuredCell,
    PlannedTraining,
    PlanRecord,
)
from ropectl.records.reading import read_as
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod
from ropectl.runs import command_line, content_id, package_versions

if TYPE_CHECKING:
    from ropectl.compare.cells import ComparisonCell
    from ropectl.compare.tuned.training import Training


def comparison_document(
    plan: Plan, recipe: Recipe | None, measured: Sequence[RowResults], num_targets: int
) -> ComparisonRecord:
    """Returns the record of a comparison.

    Args:
        plan: The comparison.
        recipe: How methods were trained; None if none was.
        measured: The results of each row.
        num_targets: K of protocol ``tail``.
    """
    clusters, trained = plan.base.documents.clusters, plan.base.setup.trained_length
    rows = [entry.row(measured[0], plan.config, clusters) for entry in measured]
    pick = pick_method(rows, trained, clusters)
    chosen = references(rows, pick, plan.config.against)
    other_tokens = [model.name for model in plan.models if not model.same_tokens]
    cells = [
        MeasuredCell(
            cell.record["id"], entry.model.name, str(entry.method), cell.training, cell.kind, max(cell.lengths)
        )
        for entry in measured
        for cell in entry.cells
    ]
    return ComparisonRecord(
        **vars(_comparison_frame(plan)),
        rows=rows,
        differences=differences(rows, chosen, trained, clusters, other_tokens),
        pick=pick,
        verdict=comparison_verdict(rows, pick, plan.target_length),
        manifest=replace(_comparison_manifest(plan, recipe, num_targets, cells), **vars(ran_on(measured))),
    )


def plan_document(
    plan: Plan,
    recipe: Recipe | None,
    cells: Sequence[Mapping[ScalingMethod, Sequence[ComparisonCell]]],
    trainings: Sequence[Training],
    num_targets: int,
) -> PlanRecord:
    """Returns the record of what is about to be measured, so that a comparison that was killed can be read and continued.

    The cells of a tuned model have no names yet, for those follow from its weights: a training says how many it has.

    Args:
        plan: The comparison.
        recipe: How methods are trained; None if none is.
        cells: Cells by model and method.
        trainings: Trainings of the first model.
        num_targets: K of protocol ``tail``.
    """
    named = [
        MeasuredCell(
            content_id(cell.settings), model.name, cell.method, None, cell.kind, cell.length, list(cell.lengths)
        )
        for model, by_method in zip(plan.models, cells, strict=True)
        for own in by_method.values()
        for cell in own
    ]
    return PlanRecord(
        **vars(_comparison_frame(plan)),
        subjects=[model.planned for model in plan.models],
        trainings=[
            PlannedTraining(training.id, str(training.method), training.covered, len(cells[0][training.method]))
            for training in trainings
        ],
        manifest=_comparison_manifest(plan, recipe, num_targets, named),
    )


def _comparison_frame(plan: Plan) -> ComparisonFrame:
    """Returns what is known of a comparison before anything is measured."""
    config, base = plan.config, plan.base
    return ComparisonFrame(
        model=config.model,
        models=[model.name for model in plan.models],
        geometry=base.setup.geometry,
        factor=base.setup.factor,
        factors=list(config.all_factors),
        target_length=plan.target_length,
        text=config.text,
        lengths=list(plan.lengths),
        same_tokens=all(model.same_tokens for model in plan.models),
    )


def _comparison_manifest(
    plan: Plan, recipe: Recipe | None, num_targets: int, cells: Sequence[MeasuredCell]
) -> ComparisonManifest:
    """Returns what is needed to make a comparison again."""
    base = plan.base
    return ComparisonManifest(
        command=command_line(),
        config=plan.config.model_dump(mode="json"),
        finetune=recipe.to_json() if recipe else None,
        versions=package_versions(),
        bos_token_id=base.setup.bos_token_id,
        documents=[document.name for document in base.documents.documents],
        tokens_sha256=base.documents.fingerprint(),
        split=base.documents.split,
        clusters=base.documents.shared_clusters,
        tail_targets_per_document=num_targets,
        existing={model.name: str(model.setup.source.rope.method) for model in plan.models},
        cells=list(cells),
    )


def covers(record: ComparisonRecord, plan: PlanRecord) -> bool:
    """Returns whether a finished comparison is the one that was planned: it has every planned cell and training."""
    cells, trainings = _parts(record)
    planned, trained = _parts(plan)
    return planned <= cells and trained <= trainings


def as_measured(record: ComparisonRecord, folder: Path) -> ComparisonRecord:
    """Returns a comparison with the command, and the versions, that measured it, which may not be those that print it again.

    The plan in a run folder is written before something is measured, so it tells the last command that did. Where that
    one measured something else, an earlier comparison of the same cells tells its own. Where there is none either, all
    was measured by others in parts, and it is of the command that puts them together.

    Args:
        record: The comparison, as this command would write it.
        folder: Its run folder.
    """
    cells, trainings = _parts(record)
    for earlier in _earlier(folder):
        # The cells of a trained model have no names in a plan; its training has.
        measured, trained = _parts(earlier)
        if cells <= measured and trainings <= trained:
            told = earlier.manifest
            return replace(record, manifest=replace(record.manifest, command=told.command, versions=told.versions))
    return record


def _earlier(folder: Path) -> Iterator[PlanRecord | ComparisonRecord]:
    """Yields the plan of a run folder, then its comparison, then those that :func:`keep_other` put aside."""
    comparison = folder / COMPARISON_FILE
    aside = folder.glob(f"{comparison.stem}-*{comparison.suffix}")
    kinds: list[tuple[type[PlanRecord | ComparisonRecord], Path]] = [(PlanRecord, folder / PLAN_FILE)]
    for kind, path in [*kinds, *((ComparisonRecord, path) for path in (comparison, *sorted(aside)))]:
        with suppress(ConfigError):  # not there, or damaged
            yield read_as(kind, read_object(path), str(path), kind.written_by)


def _parts(record: ComparisonRecord | PlanRecord) -> tuple[set[str], set[str]]:
    """Returns the ids of the cells of models as they are given, and of trainings."""
    own = record.trainings if isinstance(record, PlanRecord) else [row.training for row in record.rows if row.training]
    cells = {cell.id for cell in record.manifest.cells if cell.training is None}
    return cells, {training.id for training in own}


def keep_other(path: Path, record: dict[str, Any], reporter: Reporter) -> None:
    """Renames an earlier comparison with other settings in the same folder, so that it is not overwritten."""
    try:
        earlier = _asked_for(read_object(path)["manifest"])
    except (ConfigError, ValueError, KeyError, TypeError):
        return
    if earlier != _asked_for(record["manifest"]):
        name = content_id(json.dumps(earlier, sort_keys=True))  # of the text: an old file may hold NaN
        aside = path.with_name(f"{path.stem}-{name[:8]}{path.suffix}")
        path.replace(aside)
        reporter.note(f"{path} held another comparison; it is now {aside.name}.")


def _asked_for(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a comparison; those that are newer than its record had their defaults."""
    config = {**CompareConfig().model_dump(mode="json"), **manifest["config"]}
    units = number_of_units(config["documents"], config["split"])  # older records say the default
    return {**config, "documents": units, "finetune": manifest.get("finetune")}
