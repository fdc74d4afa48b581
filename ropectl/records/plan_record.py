"""The plan of a comparison, ``plan.json``. Other programs read it: extend, never rename."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import MinLen

from ropectl.records.comparison_record import ComparisonFrame, ComparisonManifest
from ropectl.rope.geometry import RopeGeometry


@dataclass(frozen=True)
class PlannedModel:
    """A model of a comparison, and what is measured of it.

    Attributes:
        name: The model, as the user wrote it.
        geometry: What it was trained with.
        same_tokens: Whether it reads the text in the first model's tokens.
        methods: Method specs; the first is the unscaled model.
    """

    name: str
    geometry: RopeGeometry
    same_tokens: bool
    methods: list[str]


@dataclass(frozen=True)
class PlannedTraining:
    """A training of a comparison. Its cells have no names yet, for those follow from its weights.

    Attributes:
        id: The ``training.id`` of the checkpoint's own record.
        method: Method spec.
        covered: Positions that it covers [tokens].
        cells: How many cells its weights are measured in.
    """

    id: str
    method: str
    covered: int
    cells: int


@dataclass(frozen=True, kw_only=True)
class PlanRecord(ComparisonFrame):
    """A comparison as it was planned, so that one that was killed can be read and continued.

    Attributes:
        subjects: The models.
        trainings: Trainings of the first model.
        manifest: What is needed to make it again.
    """

    kind: ClassVar[str] = "plan"
    written_by: ClassVar[str] = "compare-methods"
    known_by: ClassVar[frozenset[str]] = frozenset({"subjects", "trainings"})

    subjects: Annotated[list[PlannedModel], MinLen(1)]
    trainings: list[PlannedTraining] = field(default_factory=list)
    manifest: ComparisonManifest
