"""The view of ``finetune``: what was written, what the training took, and held-out text before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ropectl.lengths import format_length, lengths_text
from ropectl.records import FinetuneRecord, TrainingRecord, ValidationRecord
from ropectl.report.document import Cell, Column, Part, Row, Sentence, Table, View, columns, facts
from ropectl.report.tables.words import change_cell, change_text, perplexity_text, share_text, worst_head
from ropectl.report.views.patch_checkpoint import patch_rows


def finetune_parts(record: FinetuneRecord) -> list[Part]:
    """Returns what was written, what the training took, and what it changed."""
    training = record.training
    parts: list[Part] = [facts("", patch_rows(record)), _summary(training)]
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
    return [Table("Held-out text", "", heads, rows)]


VIEW = View(finetune_parts, is_headed=False)
