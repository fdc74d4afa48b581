"""How methods, models and numbers are written in tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.layout import NOT_AVAILABLE
from ropectl.rope.method import short_spec

#: Behind the name of a method that was trained.
TUNED = ", tuned"

NONE_MARK = "-"


def perplexity_text(value: float | None) -> str:
    """Returns a perplexity with three significant digits or more, never rounded to fewer than it has."""
    if value is None:
        return NOT_AVAILABLE
    if value >= 1e5:
        return f"{value:.2e}"
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def short_names(specs: Sequence[str]) -> dict[str, str]:
    """Returns how to call each method in a table: its bare name where that is unique, else its spec."""
    specs = list(dict.fromkeys(specs))
    names = [spec.partition(":")[0] for spec in specs]
    return {spec: name if names.count(name) == 1 else short_spec(spec) for spec, name in zip(specs, names, strict=True)}


def row_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns how to call each row of a comparison: as its method, whether it was trained, and another model by its name."""
    first = rows[0].get("model")
    names = short_names([row["method"] for row in rows if row.get("model") == first])
    models = model_names([row.get("model") or "" for row in rows])
    called = []
    for row in rows:
        if row.get("model") == first:
            called.append(names[row["method"]] + (TUNED if row.get("training") else ""))
        else:
            called.append(f"{models[row['model']]} ({row['method'].partition(':')[0]})")
    return called


def model_names(models: Sequence[str]) -> dict[str, str]:
    """Returns how people call each model: the last part of its place, and as many before it as tell it from the others."""
    parts = {model: model.rstrip("/").split("/") for model in models}
    count = 1
    while count < max(map(len, parts.values())) and len({tuple(p[-count:]) for p in parts.values()}) < len(parts):
        count += 1
    return {model: "/".join(names[-count:]) for model, names in parts.items()}
