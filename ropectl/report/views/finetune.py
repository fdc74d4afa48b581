"""The view of ``finetune``: what was written, what the training took, and held-out text before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ropectl.lengths import format_length, lengths_text
from ropectl.records import FinetuneRecord, MetricsLine, TrainingRecord, UnfinishedTraining, ValidationRecord
from ropectl.report.document import Cell, Column, Part, Row, Sentence, Table, View, columns, facts
from ropectl.report.tables.words import (
    change_cell,
    change_text,
    count_text,
    perplexity_text,
    setting_text,
    share_text,
    worst_head,
)
from ropectl.report.views.patch_checkpoint import patch_rows


def finetune_parts(record: FinetuneRecord) -> list[Part]:
    """Returns what was written, what the training took, and what it changed."""
    training = record.training
    parts: list[Part] = [replace(facts("", patch_rows(record)), name="What was trained"), _summary(training)]
    trained = record.geometry.original_max_position_embeddings
    parts.extend(held_out_tables(before_and_after(training), trained))
    return [*parts, *map(Sentence, short_text(training, trained))]


def _summary(training: TrainingRecord) -> Sentence:
    tokens, seconds = training.tokens or 0, training.seconds or 0.0
    loss = ""
    if training.first_loss is not None and training.last_loss is not None:
        loss = f", loss {training.first_loss:.3f} in the first step, {training.last_loss:.3f} in the last ten"
    return Sentence(
        f"{training.steps} steps, {tokens:,} tokens of {training.seq_len} a sequence "
        f"({training.epochs or 0.0:.2g} epochs), {seconds:.0f} s at {tokens / seconds if seconds else 0.0:,.0f} tokens/s{loss}"
    )


def before_and_after(training: TrainingRecord) -> list[tuple[str, ValidationRecord]]:
    """Returns the measurements of held-out text before the first step and at the best step, with their names."""
    before, after = training.validation_before, training.validation
    return [("before", before), (f"step {training.step}", after)] if before and after else []


def short_text(training: TrainingRecord, trained: int) -> list[str]:
    """Returns what the training did to held-out text at the measured lengths up to the trained one; empty if not known.

    Args:
        training: The training.
        trained: L [tokens].
    """
    after = training.validation
    lengths = [length for length in after.perplexity if length <= trained] if after else []
    if training.validation_before is None or after is None or after.short_delta is None or not lengths:
        return []
    worst = " at worst" if len(lengths) > 1 else ""
    change = f"{change_text(after.short_delta)}{worst}"
    return [f"Held-out text at {lengths_text(lengths)} tokens: perplexity {change} against the unscaled model."]


def held_out_tables(found: Sequence[tuple[str, ValidationRecord]], trained: int | None = None) -> list[Table]:
    """Returns perplexity and passkeys of held-out text by length, and the change on short text; empty if nothing was measured.

    Args:
        found: Measurements in the order of training, with their names.
        trained: L [tokens]; None if not known.
    """
    lengths = sorted({length for _, each in found for values in (each.perplexity, each.passkey) for length in values})
    if not lengths:
        return []
    kinds: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
        ("perplexity", "perplexity", perplexity_text),
        ("passkeys", "passkey", share_text),
    )
    rows = []
    for name, kind, text in kinds:
        for when, each in found:
            values: dict[int, float] = getattr(each, kind)
            if values:
                delta = change_cell(each.short_delta) if kind == "perplexity" else Cell("")
                numbers = [Cell(text(values.get(length)), value=values.get(length)) for length in lengths]
                rows.append(Row(f"{name}, {when}", [*numbers, delta]))
    heads = [*columns(map(format_length, lengths)), Column(worst_head(lengths, trained), is_detail=True)]
    about = "Perplexity, and share of passkeys found, by context [tokens], on text that was held out."
    return [Table("Held-out text", "", heads, rows, about=about)]


def unfinished_parts(record: UnfinishedTraining) -> list[Part]:
    """Returns the settings of a training that is not finished."""
    return [facts("Settings of the training", [(name, setting_text(value)) for name, value in record.settings.items()])]


def course_parts(record: Any, metrics: Sequence[MetricsLine]) -> list[Part]:
    """Returns the course of a training: what was measured of held-out text on the way, and how far an unfinished one is.

    Args:
        record: A record of any kind; those that are of no training have no course.
        metrics: The metrics of its training.
    """
    if isinstance(record, UnfinishedTraining):
        return [*history_tables(metrics), Sentence(training_summary(record, metrics))]
    return list(history_tables(metrics)) if isinstance(record, FinetuneRecord) else []


def history_tables(metrics: Sequence[MetricsLine]) -> list[Table]:
    """Returns what was measured of held-out text before the first step and on the way."""
    named = [("before" if line.step == 0 else f"step {line.step}", line.validation) for line in metrics]
    found = held_out_tables([(name, each) for name, each in named if each is not None])
    return [replace(table, name="Held-out text on the way") for table in found]


def losses_of(metrics: Sequence[MetricsLine]) -> list[MetricsLine]:
    """Returns the lines that are of steps."""
    return [line for line in metrics if line.loss is not None]


def training_summary(record: FinetuneRecord | UnfinishedTraining, metrics: Sequence[MetricsLine]) -> str:
    """Returns one line on how a training went, or how far it is.

    Args:
        record: A finished training, or the settings of an unfinished one.
        metrics: Its metrics up to now.
    """
    training = record.training if isinstance(record, FinetuneRecord) else None
    settings = training.settings if training else record.settings if isinstance(record, UnfinishedTraining) else {}
    losses, wanted = losses_of(metrics), settings.get("steps")
    done = training.steps if training else losses[-1].step if losses else 0
    of = f" of {wanted:,}" if isinstance(wanted, int) else ""
    parts = [f"{'' if training else 'Unfinished: '}{count_text(done)}{of} steps"]
    if training and training.last_loss is not None:
        parts.append(f"loss of the last ten {training.last_loss:.4f} nats a token")
    elif losses:
        parts.append(f"last loss {losses[-1].loss:.4f} nats a token")
    return "; ".join(parts) + "."


VIEW = View(finetune_parts, "Training of {model}", has_values=True, is_headed=False)
UNFINISHED = View(unfinished_parts, "Training of {model}, unfinished", is_headed=False)
