"""The result of a run: its record, and how a finished one is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.hf.config.sidecar import SIDECAR
from ropectl.json_reading import read_object
from ropectl.records import TrainingEngine, TrainingRecord, ValidationRecord
from ropectl.records.reading import read_as
from ropectl.runs import content_id
from ropectl.train.data.samples import TrainingData
from ropectl.train.run_state.progress import RunProgress, read_metrics
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.settings import FinetuneSettings
from ropectl.train.task import Task

#: Settings of the result that may differ from those that a run began with.
_FORM = ("merge", "save_dtype")


@dataclass(frozen=True)
class Finetuned:
    """The end of a run.

    Attributes:
        record: The content of the result's ``ropectl.json``; with ``dry_run`` the estimate; None if interrupted.
        signal: Number of the signal that interrupted the run; 0 if it ran to its end.
        step: Finished steps.
    """

    record: dict[str, Any] | None
    signal: int = 0
    step: int = 0


def result_id(settings: FinetuneSettings, identity: Mapping[str, Any]) -> str:
    """Returns the name of a result, made from all that decides the training, and from its form where that is not the default."""
    fields = FinetuneSettings.model_fields
    form = {name: getattr(settings, name) for name in _FORM if getattr(settings, name) != fields[name].default}
    return content_id({**identity, **form})


def finished_record(settings: FinetuneSettings, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the record of the finished result of this request; None if there is none."""
    assert settings.out is not None
    path = settings.out / SIDECAR
    if not path.is_file():
        return None
    record = read_object(path)
    return record if record.get("training", {}).get("id") == result_id(settings, identity) else None


def training_record(
    task: Task,
    data: TrainingData,
    progress: RunProgress,
    identity: Mapping[str, Any],
    folder: TrainingFolder,
    engine: TrainingEngine,
) -> TrainingRecord:
    """Returns the part of the result's record that describes the training.

    Args:
        task: What was asked for.
        data: The sequences.
        progress: The progress at the end.
        identity: All that decides the result.
        folder: Where the run is kept.
        engine: Devices and precision, described.
    """
    lines = read_metrics(folder.metrics)
    validations = {line["step"]: line["validation"] for line in lines if "validation" in line}
    losses = [line["loss"] for line in lines if "loss" in line]
    chosen = progress.best_step if progress.best_step is not None else progress.step
    return TrainingRecord(
        id=result_id(task.settings, identity),
        settings=dict(identity),
        seq_len=task.seq_len,
        learning_rate=task.settings.peak_learning_rate,
        steps=progress.step,
        step=chosen,
        tokens=progress.tokens,
        seconds=round(progress.seconds, 3),
        epochs=round(progress.step * task.settings.batch_size / data.num_blocks, 3),
        first_loss=losses[0] if losses else None,
        last_loss=sum(losses[-10:]) / len(losses[-10:]) if losses else None,
        validation_before=_validation(validations.get(0)),
        validation=_validation(validations.get(chosen)),
        engine=engine,
        metrics=str(folder.metrics),
    )


def _validation(measured: Any) -> ValidationRecord | None:
    return None if measured is None else read_as(ValidationRecord, measured, "A validation", "finetune")
