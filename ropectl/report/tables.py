"""Tables of results that fit 80 columns without losing a digit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ropectl.records import FEW_DOCUMENTS, MIN_TRIALS, NO_CHANGE
from ropectl.report.layout import BEYOND_MARK, NOT_AVAILABLE, beyond_legend, column_groups, length_column, table_of
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


def comparison_tables(record: Mapping[str, Any]) -> list[Table | Text]:
    """Returns a comparison as tables: perplexity by length, then passkey retrieval and reach."""
    rows, lengths = record["rows"], record["lengths"]
    trained = record["geometry"]["original_max_position_embeddings"]
    names = row_names(rows)
    parts: list[Table | Text] = []
    for group in column_groups(lengths):
        last = group[-1] == lengths[-1]
        parts.append(_perplexity_table(rows, names, group, trained, with_delta=last))
    if not record.get("same_tokens", True):
        parts.extend(_bits_table(rows, names, group, trained) for group in column_groups(lengths))
    if any(row["passkey"] for row in rows):
        for group in column_groups(lengths):
            parts.append(_passkey_table(rows, names, group, trained))
    parts.append(_reach_table(rows, names))
    parts.extend(beyond_legend(point["beyond_capacity"] for row in rows for point in row["perplexity"]))
    if any(row["passkey"] and row["reach"]["uses"] is None and not row["errors"] for row in rows):
        trials = min(entry["trials"] for row in rows for entry in row["passkey"])
        parts.append(
            Text(f"uses {NOT_AVAILABLE}: {trials} prompts a length are too few for a verdict ({MIN_TRIALS} wanted)")
        )
    if any(0 in (row["reach"]["models"], row["reach"]["uses"]) for row in rows):
        parts.append(Text(f"{NONE_MARK} at no evaluated length"))
    num_documents = max((point["num_documents"] for row in rows for point in row["tail"]), default=0)
    if 0 < num_documents < FEW_DOCUMENTS:
        parts.append(Text(f"models: judged on few documents ({num_documents}, at least {FEW_DOCUMENTS} wanted)"))
    for name, row in zip(names, rows, strict=True):
        parts.extend(Text(f"{name} failed: {message}") for message in row["errors"])
    pick = record["pick"]
    if pick:
        name = short_spec(pick["method"]) + (TUNED if pick.get("training") else "")
        if pick.get("model", record.get("model")) != record.get("model"):
            name = f"{model_names(record['models'])[pick['model']]} ({name})"
        parts.append(Text(f"Pick: {name} ({'; '.join(pick['reasons'])})."))
    parts.extend(Text(sentence) for sentence in record.get("verdict", ()))
    return parts


def _best(values: Sequence[float | None], smallest: bool) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return (min(known) if smallest else max(known)) if known else None


def _perplexity_table(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], lengths: Sequence[int], trained: int, with_delta: bool
) -> Table:
    columns = [length_column(length, trained) for length in lengths]
    table = table_of("Perplexity by context (L: trained)", columns + (["worst up to L"] if with_delta else []))
    best = {
        n: _best([_value(row["perplexity"], n, "context_length", "perplexity") for row in rows], smallest=True)
        for n in lengths
    }
    for name, row in zip(names, rows, strict=True):
        cells = []
        for length in lengths:
            point = _entry(row["perplexity"], length, "context_length")
            value = point["perplexity"] if point else None
            text = perplexity_text(value) + (BEYOND_MARK if point and point["beyond_capacity"] else "")
            cells.append(Text(text, style="bold green" if value is not None and value == best[length] else ""))
        if with_delta:
            cells.append(_delta(row["short_delta"]))
        table.add_row(name, *cells)
    return table


def _bits_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str], lengths: Sequence[int], trained: int) -> Table:
    """For models that read the text in different tokens."""
    table = table_of("Bits per byte by context", [length_column(length, trained) for length in lengths])
    for name, row in zip(names, rows, strict=True):
        values = [_value(row["perplexity"], length, "context_length", "bits_per_byte") for length in lengths]
        table.add_row(name, *(NOT_AVAILABLE if value is None else f"{value:.3f}" for value in values))
    return table


def _delta(value: float | None) -> Text:
    if value is None:
        return Text(NOT_AVAILABLE)
    if abs(value) < NO_CHANGE:
        value = 0.0  # a rounding difference between passes has no sign
    return Text(f"{value:+.1%}", style="red" if value > 0.005 else "")


def _passkey_table(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], lengths: Sequence[int], trained: int
) -> Table:
    trials = next(entry["trials"] for row in rows for entry in row["passkey"])
    table = table_of(f"Passkeys, of {trials} a length", [length_column(length, trained) for length in lengths])
    best = {n: _best([_value(row["passkey"], n, "length", "correct") for row in rows], smallest=False) for n in lengths}
    for name, row in zip(names, rows, strict=True):
        cells = []
        for length in lengths:
            entry = _entry(row["passkey"], length, "length")
            text = f"{entry['correct']}{BEYOND_MARK if entry['beyond_capacity'] else ''}" if entry else NOT_AVAILABLE
            cells.append(
                Text(
                    text, style="bold green" if entry and entry["correct"] and entry["correct"] == best[length] else ""
                )
            )
        table.add_row(name, *cells)
    return table


def _reach_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    table = table_of("Reach: how far it ... [tokens]", ["computes", "models", "uses", "seconds"])
    for name, row in zip(names, rows, strict=True):
        reach = row["reach"]
        computes = "unlimited" if reach["computes"] is None else str(reach["computes"])
        measured = [
            NOT_AVAILABLE if reach[sense] is None else str(reach[sense] or NONE_MARK) for sense in ("models", "uses")
        ]
        table.add_row(name, computes, *measured, f"{row['seconds']:.1f}")
    return table


def _entry(entries: Sequence[Mapping[str, Any]], length: int, key: str) -> Mapping[str, Any] | None:
    return next((entry for entry in entries if entry[key] == length), None)


def _value(entries: Sequence[Mapping[str, Any]], length: int, key: str, value: str) -> float | None:
    entry = _entry(entries, length, key)
    return None if entry is None else entry[value]
