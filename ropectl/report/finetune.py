"""What ``finetune`` shows to people: before and after in one table, or the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ropectl.lengths import format_length
from ropectl.report.patch import patch_parts
from ropectl.report.tables import LENGTHS_PER_TABLE, NOT_AVAILABLE, perplexity_text


def finetune_parts(record: Mapping[str, Any]) -> list[Text | Table]:
    """Returns what was written, what training took, and what it changed."""
    training = record["training"]
    parts: list[Text | Table] = [*patch_parts(record), _summary(training)]
    before, after = training["validation_before"], training["validation"]
    if before and after:
        lengths = [str(length) for length in before["perplexity"]]
        for start in range(0, len(lengths), LENGTHS_PER_TABLE):
            parts.append(_table(before, after, lengths[start : start + LENGTHS_PER_TABLE], training["step"]))
        if after["short_delta"] is not None:
            parts.append(
                Text(f"Text up to the trained length: perplexity {after['short_delta']:+.1%} over the unscaled model.")
            )
    return parts


def _summary(training: Mapping[str, Any]) -> Text:
    speed = training["tokens"] / training["seconds"] if training["seconds"] else 0.0
    loss = ""
    if training["first_loss"] is not None:
        loss = f", loss {training['first_loss']:.3f} -> {training['last_loss']:.3f}"
    return Text(
        f"{training['steps']} steps, {training['tokens']:,} tokens of {training['seq_len']} a sequence "
        f"({training['epochs']:.2g} epochs), {training['seconds']:.0f} s at {speed:,.0f} tokens/s{loss}"
    )


def _table(before: Mapping[str, Any], after: Mapping[str, Any], lengths: list[str], step: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="Held-out text", title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("", no_wrap=True)
    for length in lengths:
        table.add_column(format_length(int(length)), justify="right", no_wrap=True)
    for name, kind, text in (("perplexity", "perplexity", perplexity_text), ("passkeys", "passkey", _share)):
        if not before[kind]:
            continue
        for when, measured in (("before", before), (f"step {step}", after)):
            # A record that was just made has whole numbers for keys, one that was read has text.
            values = {str(length): value for length, value in measured[kind].items()}
            table.add_row(f"{name}, {when}", *(text(values.get(length)) for length in lengths))
    return table


def _share(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.0%}"


def estimate_parts(record: Mapping[str, Any]) -> list[Text | Table]:
    """Returns an estimate as a table."""
    raise NotImplementedError
