"""The JSON contract: a type for every record that a command writes. Other programs read them: extend, never rename.

The keys are declared only here, in the order in which they are written. :func:`to_json` writes a record,
:mod:`ropectl.records.reading` reads one.
"""

from __future__ import annotations

from ropectl.records.bounds import FEW_DOCUMENTS, NO_CHANGE
from ropectl.records.comparison_record import (
    ComparisonFrame,
    ComparisonManifest,
    ComparisonRecord,
    MeasuredCell,
    MethodRow,
    Pick,
    TrainingSummary,
    Unfinished,
)
from ropectl.records.comparisons import Difference, LengthVerdict, Outcome, Reach, RowDifference, SeedScore
from ropectl.records.harness_record import HarnessManifest, HarnessRecord
from ropectl.records.inspection_record import InspectionRecord
from ropectl.records.json_form import to_json
from ropectl.records.manifest import SCHEMA_VERSION, EvaluationRecord, Manifest, RanOn
from ropectl.records.passkey_record import PasskeyCell, PasskeyLength, PasskeyManifest, PasskeyRecord, UsesReach
from ropectl.records.patch_record import FinetuneRecord, PatchRecord, ScalingBefore, SourceRecord, WrittenFiles
from ropectl.records.perplexity_record import (
    Bootstrap,
    FirstToken,
    ModelsReach,
    PerplexityManifest,
    PerplexityPoint,
    PerplexityRecord,
    PositionBin,
)
from ropectl.records.plan_record import PlannedModel, PlannedTraining, PlanRecord
from ropectl.records.runtime.runtime_check_record import NONE, UNDECIDED, AskedServer, ReadingFit, RuntimeCheckRecord
from ropectl.records.runtime.runtime_reading import NextStep, Problem, ReadingEvidence, RuntimeReading
from ropectl.records.tasks_record import (
    GivenAnswer,
    PlannedTask,
    TaskAverage,
    TaskCell,
    TaskLength,
    TaskResult,
    TasksManifest,
    TasksReach,
    TasksRecord,
)
from ropectl.records.training_record import (
    MetricsLine,
    TrainingEngine,
    TrainingRecord,
    UnfinishedTraining,
    ValidationRecord,
)

__all__ = [
    "FEW_DOCUMENTS",
    "NONE",
    "NO_CHANGE",
    "SCHEMA_VERSION",
    "UNDECIDED",
    "AskedServer",
    "Bootstrap",
    "ComparisonFrame",
    "ComparisonManifest",
    "ComparisonRecord",
    "Difference",
    "EvaluationRecord",
    "FinetuneRecord",
    "FirstToken",
    "GivenAnswer",
    "HarnessManifest",
    "HarnessRecord",
    "InspectionRecord",
    "LengthVerdict",
    "Manifest",
    "MeasuredCell",
    "MethodRow",
    "MetricsLine",
    "ModelsReach",
    "NextStep",
    "Outcome",
    "PasskeyCell",
    "PasskeyLength",
    "PasskeyManifest",
    "PasskeyRecord",
    "PatchRecord",
    "PerplexityManifest",
    "PerplexityPoint",
    "PerplexityRecord",
    "Pick",
    "PlanRecord",
    "PlannedModel",
    "PlannedTask",
    "PlannedTraining",
    "PositionBin",
    "Problem",
    "RanOn",
    "Reach",
    "ReadingEvidence",
    "ReadingFit",
    "RowDifference",
    "RuntimeCheckRecord",
    "RuntimeReading",
    "ScalingBefore",
    "SeedScore",
    "SourceRecord",
    "TaskAverage",
    "TaskCell",
    "TaskLength",
    "TaskResult",
    "TasksManifest",
    "TasksReach",
    "TasksRecord",
    "TrainingEngine",
    "TrainingRecord",
    "TrainingSummary",
    "Unfinished",
    "UnfinishedTraining",
    "UsesReach",
    "ValidationRecord",
    "WrittenFiles",
    "to_json",
]
