"""Limits for the pick of a comparison: which of them it does not keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ropectl.rope.method import short_spec


def unmet_gates(record: Mapping[str, Any]) -> list[str]:
    """Returns one sentence for each limit that the pick of a comparison passes.

    Judged at every length up to the context that the comparison is about; longer ones are measured to be seen.

    Args:
        record: The comparison's document; its settings name the limits.
    """
    config, pick = record["manifest"]["config"], record["pick"]
    limits = {name: config[name] for name in ("fail_above", "min_accuracy", "max_short_regression")}
    if all(limit is None for limit in limits.values()):
        return []
    if pick is None:
        return ["No method could be picked, so no limit was kept."]
    chosen = (pick["model"], pick["method"], pick["training"])
    row = next(row for row in record["rows"] if (row["model"], row["method"], _training_id(row)) == chosen)
    of_model = "" if row["model"] == record["rows"][0]["model"] else f" of {row['model']}"
    name = f"The pick {short_spec(row['method'])}{', tuned,' if row['training'] else ''}{of_model}"
    return list(_unmet(row, name, record["target_length"], limits))


def _unmet(row: Mapping[str, Any], name: str, target_length: int, limits: Mapping[str, float | None]) -> Iterator[str]:
    above, accuracy, rise = limits["fail_above"], limits["min_accuracy"], limits["max_short_regression"]
    for point in row["perplexity"]:
        value = point["perplexity"]
        if above is not None and value is not None and value > above and point["context_length"] <= target_length:
            yield f"{name} has perplexity {value:.4g} at {point['context_length']} tokens: above --fail-above {above:g}."
    for entry in row["passkey"]:
        if accuracy is not None and entry["accuracy"] < accuracy and entry["length"] <= target_length:
            yield (
                f"{name} retrieves {entry['correct']} of {entry['trials']} passkeys at {entry['length']} tokens: "
                f"below --min-accuracy {accuracy:g}."
            )
    delta = row["short_delta"]
    if rise is not None and delta is None:
        yield f"{name} has no price on short text that could be held against --max-short-regression {rise:g}."
    if rise is not None and delta is not None and delta > rise:
        yield f"{name} raises perplexity up to the trained length by {delta:.2%}: above --max-short-regression {rise:g}."


def _training_id(row: Mapping[str, Any]) -> str | None:
    return row["training"]["id"] if row["training"] else None
