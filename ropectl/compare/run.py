"""Runs a comparison: measures the missing cells, reads the finished ones, and makes the rows from their records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.compare.document import as_measured, comparison_document, keep_other, plan_document
from ropectl.compare.plan import ComparedModel, Plan, make_plan
from ropectl.compare.ranks import Ranks
from ropectl.compare.rows import CellResult, RowResults
from ropectl.compare.tuned.recipe import read_recipe
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.perplexity.protocols.tail import num_tail_targets
from ropectl.hf.config.source import ModelSource
from ropectl.output_places import COMPARISON_FILE
from ropectl.records import PlanRecord, to_json
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod
from ropectl.runs import RunFolder, content_id, write_json

if TYPE_CHECKING:
    from ropectl.compare.cells import ComparisonCell
    from ropectl.compare.measure import CellRunner
    from ropectl.compare.tuned.training import Training

RUNS_FOLDER = "ropectl-runs"

ModelGrid = dict[ScalingMethod, list["ComparisonCell"]]


@dataclass(frozen=True)
class Comparison:
    """A comparison, finished or as far as its budget went.

    Attributes:
        record: The JSON document, as written to ``comparison.json``.
        folder: The run folder.
        num_failed: Cells that ended in an error.
        num_untrained: Trainings that ended in an error.
        is_unfinished: Whether a budget left cells out.
    """

    record: dict[str, Any]
    folder: Path
    num_failed: int
    num_untrained: int = 0
    is_unfinished: bool = False


def compare_methods(
    config: CompareConfig | None = None,
    out: Path | str | None = None,
    reporter: Reporter | None = None,
    retry_failed: bool = False,
    budget: float | None = None,
) -> Comparison:
    """Measures methods side by side on one model and text; the unscaled baseline is always among them.

    With ``config.finetune`` every method is also trained, each from the same model, seed and tokens, and measured
    again with the trained weights. Trainings and cells that ``out`` already holds with the same settings are not
    repeated; one that was interrupted, or whose budget was spent, is continued. Under a launcher its processes share the
    cells.

    Args:
        config: What to compare; by default every method at factor 4 on ``builtin:tiny`` and ``builtin:stdlib``.
        out: Run folder; by default one under ``ropectl-runs`` named after model and settings.
        reporter: Receives progress, notes and the steps of trainings.
        retry_failed: Measure again what ended in an error before.
        budget: Begin no cell that is not expected to end within this time [s], except the first.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or CompareConfig(), reporter or Reporter()
    check_budget(config, budget)
    began = time.monotonic()
    asked = RunFolder(Path(out)) if out else None
    recipe = read_recipe(config)
    plan = make_plan(config, reporter)
    from ropectl.compare.budget import Budget
    from ropectl.compare.factory import model_cells  # torch loads here, after every check that needs none
    from ropectl.compare.measure import CellRunner

    cells = [model_cells(plan, model) for model in plan.models]
    trainings: list[Training] = []
    if recipe is not None:
        from ropectl.compare.tuned.training import plan_trainings

        trainings = plan_trainings(recipe, plan.base.setup, plan.base.methods, plan.target_length, reporter)
    folder = asked or RunFolder(default_folder(plan.base.setup.source, cells, trainings))
    trainings = [training.placed(folder.path) for training in trainings]
    ranks = Ranks.of_launcher()
    num_targets = num_tail_targets(plan.lengths)
    request = plan_document(plan, recipe, cells, trainings, num_targets)
    limit = None if budget is None else Budget(budget, began)
    runner = CellRunner(folder, ranks, reporter, to_json(request), retry_failed, limit)
    measured = _measure_all(plan, cells, trainings, runner)
    if runner.left_out is not None:
        ranks.end()
        return _unfinished(folder.path, request)
    record = to_json(as_measured(comparison_document(plan, recipe, measured, num_targets), folder.path))
    if ranks.is_main:
        keep_other(folder.path / COMPARISON_FILE, record, reporter)
        write_json(folder.path / COMPARISON_FILE, record)
    ranks.end()
    num_failed = sum(cell.error is not None for entry in measured for cell in entry.cells)
    return Comparison(record, folder.path, num_failed, sum(bool(entry.errors) for entry in measured))


def check_budget(config: CompareConfig, budget: float | None) -> None:
    """Checks that a limit of time can be kept.

    Raises:
        ConfigError: If methods are trained too.
    """
    if budget is not None and config.finetune is not None:
        raise ConfigError(
            "--budget is for measurements, and --finetune trains every method too: a training has no part that fits in a time.",
            "Leave out one of them. An interrupted run is continued by the same command.",
        )


def _unfinished(folder: Path, request: PlanRecord) -> Comparison:
    """Returns a comparison as far as its budget went, as ``report`` reads it from the same folder."""
    from ropectl.compare.unfinished import unfinished_comparison

    record = unfinished_comparison(folder, request)
    num_failed = sum(len(row.errors) for row in record.rows)
    return Comparison(to_json(record), folder, num_failed, is_unfinished=True)


def _measure_all(
    plan: Plan, cells: Sequence[ModelGrid], trainings: Sequence[Training], runner: CellRunner
) -> list[RowResults]:
    """Measures the models as they are given, then trains and measures the first one under each method.

    Returns:
        The results of each row; none where the budget leaves cells out.
    """
    from ropectl.compare.measure import ModelCells

    groups = [
        ModelCells(model.setup, [cell for each in own.values() for cell in each])
        for model, own in zip(plan.models, cells, strict=True)
    ]
    measured = runner.measure(groups)
    if runner.left_out is not None:
        return []
    plain: list[RowResults] = []
    for model, own, found in zip(plan.models, cells, measured, strict=True):
        records = iter(found)
        plain.extend(RowResults(model.planned, method, _results(each, records)) for method, each in own.items())
    tuned: dict[ScalingMethod, RowResults] = {}
    for number, training in enumerate(trainings, 1):
        place = f"{number} of {len(trainings)}"
        tuned[training.method] = _train_and_measure(training, place, plan.base, cells[0][training.method], runner)
    base, others = plain[: len(cells[0])], plain[len(cells[0]) :]
    both = ((entry, tuned.get(entry.method)) for entry in base)
    return [entry for pair in both for entry in pair if entry is not None] + others


def _train_and_measure(
    training: Training, place: str, model: ComparedModel, cells: Sequence[ComparisonCell], runner: CellRunner
) -> RowResults:
    from ropectl.compare.measure import ModelCells
    from ropectl.compare.tuned.training import run_training

    done = training.finished() is not None
    runner.reporter.note(
        f"{training.label}, training {place}" + (f": {training.out} is its finished result." if done else "")
    )
    if not done:
        runner.begin()
    error = run_training(training, runner.reporter)
    if error is not None:
        return RowResults(model.planned, training.method, training=training.summary(), errors=[f"training: {error}"])
    tuned = training.tuned_setup(model.setup)
    own = [cell.after(training.id, training.cell_settings(tuned)) for cell in cells]
    results = _results(own, runner.measure([ModelCells(tuned, own)], resumed=False)[0])
    return RowResults(model.planned, training.method, results, training.summary(), training.covered)


def _results(cells: Sequence[ComparisonCell], records: Iterable[dict[str, Any]]) -> list[CellResult]:
    """Returns the cells with the records that come next."""
    return [
        CellResult(cell.kind, cell.lengths, record, cell.training) for cell, record in zip(cells, records, strict=False)
    ]


def default_folder(source: ModelSource, cells: Sequence[ModelGrid], trainings: Sequence[Training]) -> Path:
    """Returns the run folder if none is named: always the same for the same model and settings."""
    name = source.name.replace(":", "-").rstrip("/").split("/")[-1]
    settings = [cell.settings for by_method in cells for own in by_method.values() for cell in own]
    return Path(RUNS_FOLDER) / f"compare-{name}-{content_id([*settings, *(t.identity for t in trainings)])[:8]}"
