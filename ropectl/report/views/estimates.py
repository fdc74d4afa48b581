"""The views of ``--dry-run``: what a training or a comparison would take, before it is begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.document import BAD, GOOD, Cell, Column, Part, Row, Sentence, Table, View, cells, columns, facts
from ropectl.report.tables.words import NOT_AVAILABLE, duration


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


def _work_table(record: Mapping[str, Any]) -> Table:
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


def _memory_table(memory: Mapping[str, Any], unit: str, size: int) -> Table:
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
    return Table(title, "part", columns([unit]), rows)


def _verdict(memory: Mapping[str, Any]) -> Sentence:
    fits = memory.get("fits")
    if fits is None:
        return Sentence("How much memory is free is not known here.")
    return Sentence("It fits.", GOOD) if fits else Sentence("It does not fit.", BAD)


def _lever_table(levers: Sequence[Mapping[str, Any]], unit: str, size: int) -> Table:
    rows = []
    for lever in levers:
        fits = lever.get("fits")
        verdict = "" if fits is None else "fits" if fits else "does not fit"
        tone = "" if fits is None else GOOD if fits else BAD
        amount = f"{lever.get('total', 0) / size:,.2f}"
        rows.append(Row(str(lever.get("flags", "")), [Cell(amount), Cell(verdict, tone=tone)]))
    return Table("What needs less", "with", [Column(unit), Column("", is_text=True)], rows)


def comparison_estimate_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the tables of ``compare-methods --dry-run``."""
    parts: list[Part] = []
    for model in record["models"]:
        parts.extend(_model(model))
    total = [model["time"]["seconds"] for model in record["models"]]
    if len(total) > 1 and None not in total:
        parts.append(Sentence(f"All models: about {duration(sum(total))} on this machine."))
    return parts


def _model(model: Mapping[str, Any]) -> list[Part]:
    seconds = model["time"].get("kinds", {})
    rows = []
    for kind in model["kinds"]:
        time = seconds.get(kind["kind"])
        shown = NOT_AVAILABLE if time is None else duration(time)
        rows.append(
            Row(kind["kind"], cells([str(kind["cells"]), f"{kind['tokens']:,}", f"{kind['flops']:.2e}", shown]))
        )
    title = f"{model['model']}, {len(model['methods'])} method{'s' if len(model['methods']) > 1 else ''}"
    heads = columns(["cells", "tokens", "operations", "time, about"])
    parts: list[Part] = [Table(title, "measurement", heads, rows)]
    if model["finished"]:
        parts.append(Sentence(f"{model['finished']} of {model['cells']} cells are finished already and not counted."))
    if model["time"]["seconds"] is None:
        parts.append(Sentence(f"Time and memory: n/a ({model['time']['reason']})."))
        return parts
    parts.append(Sentence(f"In all about {duration(model['time']['seconds'])} on this machine, one process."))
    if model["memory"]["parts"]:
        parts.append(Sentence(_memory_sentence(model["memory"])))
    return parts


def _memory_sentence(memory: Mapping[str, Any]) -> str:
    unit, size = ("GiB", 2**30) if memory["total"] >= 2**30 else ("MiB", 2**20)
    named = ", ".join(f"{name} {amount / size:.2f}" for name, amount in memory["parts"].items() if amount)
    free = "" if memory["free"] is None else f"; free: {memory['free'] / size:.1f} {unit}"
    return f"Memory about {memory['total'] / size:.2f} {unit} ({named}){free}."


COMPARISON = View(comparison_estimate_parts, is_headed=False)
