"""``plan.json``: what a comparison is about to measure, so that one that was killed can be read, and continued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ropectl.compare.document import comparison_frame, comparison_manifest
from ropectl.compare.plan import Plan
from ropectl.compare.recipe import Recipe
from ropectl.records import MeasuredCell, PlannedModel, PlannedTraining, PlanRecord
from ropectl.rope.method import ScalingMethod
from ropectl.runs import content_id

if TYPE_CHECKING:
    from ropectl.compare.cells import ComparisonCell
    from ropectl.compare.training import Training

PLAN_FILE = "plan.json"


def plan_document(
    plan: Plan,
    recipe: Recipe | None,
    cells: Sequence[Mapping[ScalingMethod, Sequence[ComparisonCell]]],
    trainings: Sequence[Training],
    num_targets: int,
) -> PlanRecord:
    """Returns the record: a comparison's frame and manifest, its models, and its trainings.

    The cells of a tuned model have no names yet, for those follow from its weights: a training says how many it has.

    Args:
        plan: What is compared.
        recipe: How methods are trained; None if none is.
        cells: Cells by model and method.
        trainings: Trainings of the first model.
        num_targets: K of protocol ``tail``.
    """
    named = [
        MeasuredCell(
            content_id(cell.settings), subject.name, str(method), None, cell.kind, cell.length, list(cell.lengths)
        )
        for subject, own in zip(plan.subjects, cells, strict=True)
        for method, group in own.items()
        for cell in group
    ]
    return PlanRecord(
        **vars(comparison_frame(plan)),
        subjects=[
            PlannedModel(
                subject.name, subject.geometry, subject.same_tokens, [str(method) for method in subject.methods]
            )
            for subject in plan.subjects
        ],
        trainings=[
            PlannedTraining(training.id, str(training.method), training.covered, len(cells[0][training.method]))
            for training in trainings
        ],
        manifest=comparison_manifest(plan, recipe, num_targets, named),
    )
