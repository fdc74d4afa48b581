"""Sections for trainings, finished or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.page.blocks import Block, Cell, Commands, Facts, Hidden, Link, Row, Section, Table, Words
from ropectl.report.page.commands import Command, typed_command
from ropectl.report.page.numbers import NOTHING, number_cell, percent, signed_percent
from ropectl.report.tables import perplexity_text


def finetune_sections(record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> list[Section]:
    """Returns what a finished training changed and took.

    Args:
        record: That a tuned checkpoint carries.
        metrics: Of its run folder; empty if that is not there.
    """
    training = record["training"]
    before, after = training["validation_before"], training["validation"]
    blocks: list[Block] = []
    if before and after:
        delta = after.get("short_delta")
        if isinstance(delta, int | float):
            text = f"Text up to the trained length: perplexity {signed_percent(delta)} against the unscaled model."
            blocks.append(Words(text, "lead"))
        blocks.append(_validations([("before", before), (f"step {training['step']}", after)]))
    else:
        blocks.append(Words("No text was held out, so that it cannot be said what the training changed.", "lead"))
    facts = [
        ("Steps", _count(training["steps"])),
        ("Tokens predicted", _count(training["tokens"])),
        ("Tokens a sequence", _count(training["seq_len"])),
        ("Epochs", NOTHING if training["epochs"] is None else f"{training['epochs']:.2g}"),
        ("Time in steps", NOTHING if training["seconds"] is None else f"{training['seconds']:,.0f} s"),
        ("Loss of the first step", _loss(training["first_loss"])),
        ("Loss of the last ten", _loss(training["last_loss"])),
        *((str(name), str(value)) for name, value in training["engine"].items()),
    ]
    summary: list[Block] = [Facts(facts), *_history(metrics), _settings(training["settings"])]
    return [Section("What it changed", "verdict", blocks), Section("Training", "training", summary)]


def run_sections(record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> list[Section]:
    """Returns how far a training has come that has not come to its end.

    Args:
        record: Its settings.
        metrics: What it has written so far.
    """
    settings = record["settings"]
    steps = [line for line in metrics if isinstance(line.get("loss"), int | float)]
    done, wanted = (steps[-1]["step"] if steps else 0), settings.get("steps")
    text = (
        f"Unfinished: {done} of {wanted} steps are done."
        if isinstance(wanted, int)
        else f"Unfinished, after step {done}."
    )
    blocks: list[Block] = [
        Words(f"{text} The command that began it continues it from its newest saved state.", "warning")
    ]
    if steps:
        blocks.append(
            Words(
                f"Loss {steps[-1]['loss']:.4f} nats a token at step {done}; {steps[0]['loss']:.4f} in the first.",
                "lead",
            )
        )
    return [
        Section("How far it is", "verdict", blocks),
        Section("Training", "training", [*_history(metrics), _settings(settings)]),
    ]


def training_words(record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> str:
    """Returns in a line how a training went, or how far it has come.

    Args:
        record: Of a finished training, or the settings of one that goes on.
        metrics: What it has written so far.
    """
    training = record.get("training")
    losses = [line for line in metrics if isinstance(line.get("loss"), int | float)]
    wanted = (training or record)["settings"].get("steps")
    done = (losses[-1]["step"] if losses else 0) if training is None else training["steps"]
    of = f" of {wanted:,}" if isinstance(wanted, int) else ""
    parts = [f"{'Unfinished: ' if training is None else ''}{_count(done)}{of} steps"]
    if training is not None and training["last_loss"] is not None:
        parts.append(f"loss of the last ten {training['last_loss']:.4f} nats a token")
    elif losses:
        parts.append(f"last loss {losses[-1]['loss']:.4f} nats a token")
    return "; ".join(parts) + "."


def finetune_command(record: Mapping[str, Any]) -> Section | None:
    """Returns the command behind a training; None where it is not known."""
    line = typed_command(record.get("command"))
    return Section("Commands", "commands", [Commands([Command("As it was typed", line)])]) if line else None


def _history(metrics: Sequence[Mapping[str, Any]]) -> list[Block]:
    found = [
        ("before" if line["step"] == 0 else f"step {line['step']}", line["validation"])
        for line in metrics
        if isinstance(line.get("validation"), Mapping)
    ]
    return [_validations(found)] if found else []


def _validations(found: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    lengths = sorted(
        {int(n) for _, each in found for kind in ("perplexity", "passkey") for n in _by_length(each, kind)}
    )
    rows = []
    for name, each in found:
        perplexity, passkey = _by_length(each, "perplexity"), _by_length(each, "passkey")
        cells = [number_cell(_number(perplexity, n), perplexity_text(_number(perplexity, n))) for n in lengths]
        cells += [number_cell(_number(passkey, n), percent(_number(passkey, n))) for n in lengths]
        delta = each.get("short_delta")
        cells.append(Cell(signed_percent(delta if isinstance(delta, int | float) else None)))
        rows.append(Row(name, cells))
    columns = [f"{length:,}" for length in lengths]
    groups = [("Perplexity", len(lengths)), ("Passkeys", len(lengths)), ("", 1)]
    return Table("Held-out text", ["when", *columns, *columns, "worst up to L"], rows, (), groups if lengths else ())


def _by_length(validation: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Values by length, as far as the keys are lengths."""
    values = validation.get(kind)
    return (
        {key: value for key, value in values.items() if str(key).isascii() and str(key).isdigit()}
        if isinstance(values, Mapping)
        else {}
    )


def _number(values: Mapping[str, Any], length: int) -> float | None:
    value = values.get(str(length))
    return value if isinstance(value, int | float) else None


def _settings(settings: Mapping[str, Any]) -> Hidden:
    facts: list[tuple[str, str | Link]] = [
        (str(name), NOTHING if value is None else str(value)) for name, value in settings.items()
    ]
    return Hidden("Settings", [Facts(facts)])


def _count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _loss(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4f} nats"
