"""Sections for trainings, finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.records import FinetuneRecord, MetricsLine, TrainingRecord, TrainingSummary, UnfinishedTraining, to_json
from ropectl.report.blocks import Block, Command, Commands, Hidden, Section
from ropectl.report.document import LEAD, WARNING, Sentence, Table, facts
from ropectl.report.page.commands import typed_command
from ropectl.report.tables.words import NOT_AVAILABLE, count_text, setting_text
from ropectl.report.views.finetune import before_and_after, held_out_tables, short_text


def finetune_sections(record: FinetuneRecord, metrics: Sequence[MetricsLine]) -> list[Section]:
    """Returns what a finished training changed and took.

    Args:
        record: The record in a tuned checkpoint.
        metrics: The metrics in its run folder; empty if there is none.
    """
    training = record.training
    blocks: list[Block] = []
    compared = before_and_after(training)
    if compared:
        trained = record.geometry.original_max_position_embeddings
        blocks.extend(Sentence(text, LEAD) for text in short_text(training, trained))
        blocks.extend(held_out_tables(compared, trained))
    else:
        blocks.append(Sentence("No text was held out, so it is not known what the training changed.", LEAD))
    rows = (
        *training_rows(training),
        ("Tokens a sequence", count_text(training.seq_len)),
        ("Epochs", NOT_AVAILABLE if training.epochs is None else f"{training.epochs:.2g}"),
        ("Loss of the first step", _loss(training.first_loss)),
        *((name, setting_text(value)) for name, value in to_json(training.engine).items()),
    )
    summary: list[Block] = [facts("", rows), *_history(metrics), settings_list("Settings", training.settings)]
    return [Section("What it changed", "verdict", blocks), Section("Training", "training", summary)]


def training_rows(training: TrainingRecord | TrainingSummary) -> list[tuple[str, str]]:
    """Returns what a training took, and the loss that it reached."""
    return [
        ("Steps", count_text(training.steps)),
        ("Tokens predicted", count_text(training.tokens)),
        ("Time in steps", NOT_AVAILABLE if training.seconds is None else f"{training.seconds:,.0f} s"),
        ("Loss of the last ten steps", _loss(training.last_loss)),
    ]


def run_sections(record: UnfinishedTraining, metrics: Sequence[MetricsLine]) -> list[Section]:
    """Returns the progress of an unfinished training.

    Args:
        record: Its settings.
        metrics: Its metrics up to now.
    """
    steps, wanted = _losses(metrics), record.settings.get("steps")
    done = steps[-1].step if steps else 0
    text = f"{done} of {wanted} steps are done." if isinstance(wanted, int) else f"it is at step {done}."
    blocks: list[Block] = [
        Sentence(f"Unfinished: {text} The command that began it continues it from its newest saved state.", WARNING)
    ]
    if steps:
        loss = f"Loss {steps[-1].loss:.4f} nats a token at step {done}; {steps[0].loss:.4f} in the first."
        blocks.append(Sentence(loss, LEAD))
    training: list[Block] = [*_history(metrics), settings_list("Settings", record.settings)]
    return [Section("How far it is", "verdict", blocks), Section("Training", "training", training)]


def training_summary(record: FinetuneRecord | UnfinishedTraining, metrics: Sequence[MetricsLine]) -> str:
    """Returns one line on how a training went, or how far it is.

    Args:
        record: A finished training, or the settings of an unfinished one.
        metrics: Its metrics up to now.
    """
    training = record.training if isinstance(record, FinetuneRecord) else None
    settings = training.settings if training else record.settings if isinstance(record, UnfinishedTraining) else {}
    losses, wanted = _losses(metrics), settings.get("steps")
    done = training.steps if training else losses[-1].step if losses else 0
    of = f" of {wanted:,}" if isinstance(wanted, int) else ""
    parts = [f"{'' if training else 'Unfinished: '}{count_text(done)}{of} steps"]
    if training and training.last_loss is not None:
        parts.append(f"loss of the last ten {training.last_loss:.4f} nats a token")
    elif losses:
        parts.append(f"last loss {losses[-1].loss:.4f} nats a token")
    return "; ".join(parts) + "."


def finetune_command(record: FinetuneRecord) -> Section | None:
    """Returns the command of a training; None if not known."""
    line = typed_command(record.command)
    return Section("Commands", "commands", [Commands([Command("As it was typed", line)])]) if line else None


def settings_list(title: str, settings: dict[str, Any]) -> Hidden:
    """Returns settings by name, folded under a title."""
    return Hidden(title, [facts("", [(name, setting_text(value)) for name, value in settings.items()])])


def _losses(metrics: Sequence[MetricsLine]) -> list[MetricsLine]:
    return [line for line in metrics if line.loss is not None]


def _history(metrics: Sequence[MetricsLine]) -> list[Table]:
    named = [("before" if line.step == 0 else f"step {line.step}", line.validation) for line in metrics]
    return held_out_tables([(name, each) for name, each in named if each is not None])


def _loss(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.4f} nats"
