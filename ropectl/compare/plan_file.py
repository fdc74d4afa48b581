"""``plan.json``: what a comparison is about to measure, so that one that was killed can be read, and continued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ropectl.compare.document import comparison_frame, comparison_manifest
from ropectl.compare.plan import Plan
from ropectl.compare.recipe import Recipe
from ropectl.rope.method import ScalingMethod
from ropectl.runs import content_id

if TYPE_CHECKING:
    from ropectl.compare.cells import Cell
    from ropectl.compare.training import Training

PLAN_FILE = "plan.json"


def plan_document(
    plan: Plan,
    recipe: Recipe | None,
    cells: Sequence[Mapping[ScalingMethod, Sequence[Cell]]],
    trainings: Sequence[Training],
    num_targets: int,
) -> dict[str, Any]:
    """Returns the document: a comparison's frame and manifest, its models, and its trainings.

    The cells of a tuned model have no names yet, for those follow from its weights: a training says how many it has.

    Args:
        plan: What is compared.
        recipe: How methods are trained; None if none is.
        cells: Cells by model and method.
        trainings: Trainings of the first model.
        num_targets: K of protocol ``tail``.
    """
    named = [
        {
            "id": content_id(cell.settings),
            "model": subject.name,
            "method": str(method),
            "training": None,
            "kind": cell.kind,
            "length": cell.length,
            "lengths": list(cell.lengths),
        }
        for subject, own in zip(plan.subjects, cells, strict=True)
        for method, group in own.items()
        for cell in group
    ]
    return {
        **comparison_frame(plan),
        "subjects": [
            {
                "name": subject.name,
                "geometry": subject.geometry.to_json(),
                "same_tokens": subject.same_tokens,
                "methods": [str(method) for method in subject.methods],
            }
            for subject in plan.subjects
        ],
        "trainings": [
            {
                "id": training.id,
                "method": str(training.method),
                "covered": training.covered,
                "cells": len(cells[0][training.method]),
            }
            for training in trainings
        ],
        "manifest": comparison_manifest(plan, recipe, num_targets, named),
    }
