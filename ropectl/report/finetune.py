"""What ``finetune`` shows to people: before and after in one table, or the estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.lengths import format_length
from ropectl.report.layout import NOT_AVAILABLE
from ropectl.report.patch import patch_rows
from ropectl.report.sheet import BAD, GOOD, Cell, Column, Part, Row, Sentence, Sheet, cells, columns, facts
from ropectl.report.tables import perplexity_text


def finetune_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns what was written, what training took, and what it changed."""
    training = record["training"]
    parts: list[Part] = [facts("", patch_rows(record)), _summary(training)]
    before, after = training["validation_before"], training["validation"]
    if before and after:
        parts.append(_table(before, after, training["step"]))
        if after["short_delta"] is not None:
            change = f"perplexity {after['short_delta']:+.1%} over the unscaled model."
            parts.append(Sentence(f"Text up to the trained length: {change}"))
    return parts


def _summary(training: Mapping[str, Any]) -> Sentence:
    speed = training["tokens"] / training["seconds"] if training["seconds"] else 0.0
    loss = ""
    if training["first_loss"] is not None:
        loss = f", loss {training['first_loss']:.3f} in the first step, {training['last_loss']:.3f} in the last ten"
    return Sentence(
        f"{training['steps']} steps, {training['tokens']:,} tokens of {training['seq_len']} a sequence "
        f"({training['epochs']:.2g} epochs), {training['seconds']:.0f} s at {speed:,.0f} tokens/s{loss}"
    )


def _table(before: Mapping[str, Any], after: Mapping[str, Any], step: int) -> Sheet:
    lengths = [str(length) for length in before["perplexity"]]
    rows = []
    for name, kind, text in (("perplexity", "perplexity", perplexity_text), ("passkeys", "passkey", _share)):
        if not before[kind]:
            continue
        for when, measured in (("before", before), (f"step {step}", after)):
            # A record that was just made has whole numbers for keys, one that was read has text.
            values = {str(length): value for length, value in measured[kind].items()}
            rows.append(Row(f"{name}, {when}", cells(text(values.get(length)) for length in lengths)))
    return Sheet("Held-out text", "", columns(format_length(int(length)) for length in lengths), rows)


def _share(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.0%}"


def estimate_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns an estimate as tables: what is done, memory by part, and what would need less.

    Parts that a record lacks are left out.
    """
    parts: list[Part] = [_work_table(record)]
    memory = record.get("memory") or {}
    if memory.get("parts"):
        unit, size = ("GiB", 2**30) if memory.get("total", 0) >= 2**30 else ("MiB", 2**20)
        parts.append(_memory_table(memory, unit, size))
        parts.append(_verdict(memory))
        if memory.get("levers"):
            parts.append(_lever_table(memory["levers"], unit, size))
        wanted = [memory.get("fits"), *(lever.get("fits") for lever in memory.get("levers") or ())]
        if all(fits is False for fits in wanted):
            parts.append(Sentence("It needs more devices: FSDP2 divides the weights, --cp-size the sequences."))
    reasons = record.get("rough") or []
    if reasons:
        parts.append(Sentence(f"Memory and time are rough: {'; '.join(reasons)}."))
    return parts


def _work_table(record: Mapping[str, Any]) -> Sheet:
    rows = (
        ("model", f"{record.get('model', NOT_AVAILABLE)}, {record.get('method', NOT_AVAILABLE)}"),
        ("parameters", _parameters(record.get("parameters") or {})),
        ("text", _text(record)),
        ("arithmetic", _arithmetic(record.get("flops") or {})),
        ("time", _time(record.get("time") or {})),
    )
    return facts("Estimate; no weight was loaded, nothing written", [row for row in rows if row[1]])


def _parameters(parameters: Mapping[str, Any]) -> str:
    if "total" not in parameters:
        return ""
    trained, total = parameters.get("trained", 0), parameters["total"]
    parts = ", ".join(f"{name} {count:,}" for name, count in (parameters.get("trained_parts") or {}).items())
    return f"{total:,}; trained {trained:,} ({trained / total:.2%})" + (f": {parts}" if parts else "")


def _text(record: Mapping[str, Any]) -> str:
    data = record.get("data") or {}
    if "steps" not in data:
        return ""
    return (
        f"{data['steps']:,} steps of {data.get('sequences_per_step', 0):,} sequences, {data.get('tokens', 0):,} tokens "
        f"({data.get('tokens_per_step', 0):,} a step), {data.get('epochs', 0.0):.3g} epochs of {data.get('blocks', 0):,} "
        f"blocks of {record.get('seq_len', 0):,}"
    )


def _arithmetic(flops: Mapping[str, float]) -> str:
    if "total" not in flops:
        return ""
    return f"{flops['total']:.3g} operations, {flops.get('per_token', 0.0):.3g} a token"


def _time(time: Mapping[str, Any]) -> str:
    if time.get("seconds") is None:
        return f"{NOT_AVAILABLE}: {time['reason']}" if time.get("reason") else ""
    seconds = time["seconds"]
    text = f"about {duration(seconds)}"
    if time.get("seconds_per_step") is not None:
        step = time["seconds_per_step"]
        text += f", {step:.3g} s a step" if step < 100 else f", {duration(step)} a step"
    if time.get("tokens_per_second") is not None:
        text += f", {time['tokens_per_second']:,.0f} tokens/s"
    left_out = time.get("left_out") or []
    return text + (f"; without {', '.join(left_out)}" if left_out else "")


def duration(seconds: float) -> str:
    """Returns a time as people say it: ``0.4 s``, ``50 s``, ``12 min``, ``3 h 05 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min"


def _memory_table(memory: Mapping[str, Any], unit: str, size: int) -> Sheet:
    devices = memory.get("devices", 1)
    rows = [
        Row(str(name).replace("_", " "), cells([f"{num_bytes / size:,.2f}"]))
        for name, num_bytes in memory["parts"].items()
    ]
    if memory.get("total") is not None:
        rows.append(Row("all, at most", cells([f"{memory['total'] / size:,.2f}"]), is_total=True))
    if memory.get("free") is not None:
        rows.append(Row("free", cells([f"{memory['free'] / size:,.2f}"])))
    title = "Memory" if devices == 1 else f"Memory on each of {devices} devices"
    return Sheet(title, "part", columns([unit]), rows)


def _verdict(memory: Mapping[str, Any]) -> Sentence:
    fits = memory.get("fits")
    if fits is None:
        return Sentence("How much memory is free is not known here.")
    return Sentence("It fits.", GOOD) if fits else Sentence("It does not fit.", BAD)


def _lever_table(levers: Sequence[Mapping[str, Any]], unit: str, size: int) -> Sheet:
    rows = []
    for lever in levers:
        fits = lever.get("fits")
        verdict = "" if fits is None else "fits" if fits else "does not fit"
        tone = "" if fits is None else GOOD if fits else BAD
        amount = f"{lever.get('total', 0) / size:,.2f}"
        rows.append(Row(str(lever.get("flags", "")), [Cell(amount), Cell(verdict, tone=tone)]))
    return Sheet("What needs less", "with", [Column(unit), Column("", is_text=True)], rows)
