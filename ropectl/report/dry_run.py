"""The estimate of a comparison as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.finetune import duration
from ropectl.report.layout import NOT_AVAILABLE
from ropectl.report.sheet import Part, Row, Sentence, Sheet, cells, columns


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
    parts: list[Part] = [Sheet(title, "measurement", heads, rows)]
    if model["finished"]:
        parts.append(Sentence(f"{model['finished']} of {model['cells']} cells are finished already and not counted."))
    if model["time"]["seconds"] is None:
        parts.append(Sentence(f"Time and memory: n/a ({model['time']['reason']})."))
        return parts
    parts.append(Sentence(f"In all about {duration(model['time']['seconds'])} on this machine, one process."))
    if model["memory"]["parts"]:
        parts.append(Sentence(_memory(model["memory"])))
    return parts


def _memory(memory: Mapping[str, Any]) -> str:
    unit, size = ("GiB", 2**30) if memory["total"] >= 2**30 else ("MiB", 2**20)
    named = ", ".join(f"{name} {amount / size:.2f}" for name, amount in memory["parts"].items() if amount)
    free = "" if memory["free"] is None else f"; free: {memory['free'] / size:.1f} {unit}"
    return f"Memory about {memory['total'] / size:.2f} {unit} ({named}){free}."
