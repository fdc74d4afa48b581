"""Sections for trainings, finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.records import FinetuneRecord, MetricsLine, TrainingRecord, TrainingSummary, UnfinishedTraining
from ropectl.report.blocks import Block, Command, Commands, Hidden, Section
from ropectl.report.document import LEAD, WARNING, Sentence, facts
from ropectl.report.page.commands import typed_command
from ropectl.report.tables.words import NOT_AVAILABLE, count_text, setting_text
from ropectl.report.views.finetune import before_and_after, held_out_tables, history_tables, losses_of, short_text


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
    )
    summary: list[Block] = [facts("", rows), *history_tables(metrics), settings_list("Settings", training.settings)]
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
    steps, wanted = losses_of(metrics), record.settings.get("steps")
    done = steps[-1].step if steps else 0
    text = f"{done} of {wanted} steps are done." if isinstance(wanted, int) else f"it is at step {done}."
    blocks: list[Block] = [
        Sentence(f"Unfinished: {text} The command that began it continues it from its newest saved state.", WARNING)
    ]
    if steps:
        loss = f"Loss {steps[-1].loss:.4f} nats a token at step {done}; {steps[0].loss:.4f} in the first."
        blocks.append(Sentence(loss, LEAD))
    training: list[Block] = [*history_tables(metrics), settings_list("Settings", record.settings)]
    return [Section("How far it is", "verdict", blocks), Section("Training", "training", training)]


def finetune_command(record: FinetuneRecord) -> Section | None:
    """Returns the command of a training; None if not known."""
    line = typed_command(record.command)
    return Section("Commands", "commands", [Commands([Command("As it was typed", line)])]) if line else None


def settings_list(title: str, settings: dict[str, Any]) -> Hidden:
    """Returns settings by name, folded under a title."""
    return Hidden(title, [facts("", [(name, setting_text(value)) for name, value in settings.items()])])


def _loss(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.4f} nats"
