"""A comparison for people: perplexity by length with its curve, passkeys, and how far each method reaches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ropectl.records import FEW_DOCUMENTS, MIN_TRIALS, NO_CHANGE
from ropectl.report.best import best_bits, best_passkeys, best_perplexities, bits_text
from ropectl.report.graphics import chosen, curve, curve_ends, curve_scale
from ropectl.report.heat import differing_maps
from ropectl.report.layout import NOT_AVAILABLE, beyond_legend, beyond_mark, length_column
from ropectl.report.sheet import BAD, BestLegend, Cell, Column, Part, Row, Sentence, Sheet, columns
from ropectl.report.tables import NONE_MARK, TUNED, model_names, perplexity_text, row_names
from ropectl.rope.method import short_spec

#: A rise of perplexity by more than this share is worth a colour.
REGRESSION = 0.005

Rows = Sequence[Mapping[str, Any]]


def comparison_tables(record: Mapping[str, Any]) -> list[Part]:
    """Returns a comparison as tables: perplexity by length, then passkey retrieval and reach, then what they come to."""
    rows, names = record["rows"], row_names(record["rows"])
    same_tokens = record.get("same_tokens", True)
    drawn = _curve_values(rows, record["lengths"], same_tokens)
    scale = curve_scale(drawn)
    parts: list[Part] = [_perplexity_sheet(record, names, scale if same_tokens else None)]
    if not same_tokens:
        parts.append(_bits_sheet(record, names, scale))
    if any(row["passkey"] for row in rows):
        parts.append(_passkey_sheet(record, names))
        parts.extend(differing_maps(rows, names))
    parts.append(_reach_sheet(record, names))
    return [
        *parts,
        *_legends(record, parts, _curve_legend(record, drawn, scale)),
        *_failures(rows, names),
        *_conclusions(record),
    ]


def _perplexity_sheet(record: Mapping[str, Any], names: Sequence[str], scale: tuple[float, float] | None) -> Sheet:
    rows, trained = record["rows"], record["geometry"]["original_max_position_embeddings"]
    numbers = []
    for length in record["lengths"]:
        base = _value(rows[0]["perplexity"], length, "context_length", "perplexity")
        cells = []
        for row in rows:
            point = _entry(row["perplexity"], length, "context_length")
            value = point["perplexity"] if point else None
            is_judged = row["short_delta"] is not None and length <= trained
            tone = BAD if is_judged and value and base and value > base * (1 + REGRESSION) else ""
            cells.append(Cell(perplexity_text(value), beyond_mark(bool(point and point["beyond_capacity"])), tone=tone))
        numbers.append(_marked(cells, best_perplexities(record, length)))
    heads = columns(length_column(length, trained) for length in record["lengths"])
    numbers.append([_delta(row["short_delta"]) for row in rows])
    heads.append(Column("worst up to L"))
    _add_curve(record, heads, numbers, "perplexity", scale)
    return Sheet("Perplexity by context (L: trained)", "method", heads, _rows(names, numbers))


def _bits_sheet(record: Mapping[str, Any], names: Sequence[str], scale: tuple[float, float] | None) -> Sheet:
    """For models that read the text in different tokens."""
    rows, trained = record["rows"], record["geometry"]["original_max_position_embeddings"]
    numbers = []
    for length in record["lengths"]:
        values = [_value(row["perplexity"], length, "context_length", "bits_per_byte") for row in rows]
        numbers.append(_marked([Cell(bits_text(value)) for value in values], best_bits(record, length)))
    heads = columns(length_column(length, trained) for length in record["lengths"])
    _add_curve(record, heads, numbers, "bits_per_byte", scale)
    return Sheet("Bits per byte by context (L: trained)", "method", heads, _rows(names, numbers))


def _add_curve(
    record: Mapping[str, Any],
    heads: list[Column],
    numbers: list[list[Cell]],
    key: str,
    scale: tuple[float, float] | None,
) -> None:
    lengths = [record["lengths"][index] for index in chosen(len(record["lengths"]))]
    if scale is None or len(lengths) < 2:
        return
    heads.append(Column("curve", is_drawing=True))
    drawn = [[_value(row["perplexity"], n, "context_length", key) for n in lengths] for row in record["rows"]]
    numbers.append([Cell(curve(values, scale)) for values in drawn])


def _curve_values(rows: Rows, lengths: Sequence[int], same_tokens: bool) -> list[float | None]:
    key = "perplexity" if same_tokens else "bits_per_byte"
    return [_value(row["perplexity"], length, "context_length", key) for row in rows for length in lengths]


def _marked(cells: Sequence[Cell], best: Sequence[bool]) -> list[Cell]:
    return [replace(cell, best=mark) for cell, mark in zip(cells, best, strict=True)]


def _delta(value: float | None) -> Cell:
    if value is None or math.isnan(value):
        return Cell(NOT_AVAILABLE)
    if abs(value) < NO_CHANGE:
        value = 0.0  # a rounding difference between passes has no sign
    return Cell(f"{value:+.1%}", tone=BAD if value > REGRESSION else "")


def _passkey_sheet(record: Mapping[str, Any], names: Sequence[str]) -> Sheet:
    rows, trained = record["rows"], record["geometry"]["original_max_position_embeddings"]
    trials = next(entry["trials"] for row in rows for entry in row["passkey"])
    numbers = []
    for length in record["lengths"]:
        found = [_entry(row["passkey"], length, "length") for row in rows]
        cells = [
            Cell(str(entry["correct"]), beyond_mark(entry["beyond_capacity"]), shade=entry["correct"] / entry["trials"])
            if entry
            else Cell(NOT_AVAILABLE)
            for entry in found
        ]
        numbers.append(_marked(cells, best_passkeys(record, length)))
    heads = columns(length_column(length, trained) for length in record["lengths"])
    return Sheet(f"Passkeys, of {trials} a length", "method", heads, _rows(names, numbers))


def _reach_sheet(record: Mapping[str, Any], names: Sequence[str]) -> Sheet:
    target = _target(record)
    rows = []
    for name, row in zip(names, record["rows"], strict=True):
        reach = row["reach"]
        computes = reach["computes"]
        cells = [Cell("unlimited", bar=1.0) if computes is None else Cell(str(computes), bar=computes / target)]
        for sense in ("models", "uses"):
            value = reach[sense]
            shown = NOT_AVAILABLE if value is None else str(value or NONE_MARK)
            cells.append(Cell(shown, bar=None if value is None else value / target))
        rows.append(Row(name, [*cells, Cell(f"{row['seconds']:.1f}")]))
    title = f"Reach: how far it ... [tokens], bars of {target}"
    return Sheet(title, "method", columns(["computes", "models", "uses", "seconds"]), rows)


def _target(record: Mapping[str, Any]) -> int:
    return int(record.get("target_length") or max(record["lengths"]))


def _legends(record: Mapping[str, Any], parts: Sequence[Part], curves: str) -> Iterator[Part]:
    rows = record["rows"]
    same_tokens = record.get("same_tokens", True)
    sheets = [part for part in parts if isinstance(part, Sheet)]
    if any(cell.best for sheet in sheets for row in sheet.rows for cell in row.cells):
        yield BestLegend("best of its column" + ("" if same_tokens else "; perplexities compare within a model only"))
    yield from beyond_legend(point["beyond_capacity"] for row in rows for point in row["perplexity"])
    if any(0 in (row["reach"]["models"], row["reach"]["uses"]) for row in rows):
        yield Sentence(f"{NONE_MARK} at no evaluated length")
    if not same_tokens:
        yield Sentence("Models read the text in different tokens: bits per byte compare them, perplexities do not.")
    if curves:
        yield Sentence(curves, is_of_drawing=True)
    if any(row["passkey"] and row["reach"]["uses"] is None and not row["errors"] for row in rows):
        trials = min(entry["trials"] for row in rows for entry in row["passkey"])
        yield Sentence(
            f"uses {NOT_AVAILABLE}: {trials} prompts a length are too few for a verdict ({MIN_TRIALS} wanted)"
        )
    num_documents = max((point["num_documents"] for row in rows for point in row["tail"]), default=0)
    if 0 < num_documents < FEW_DOCUMENTS:
        yield Sentence(f"models: judged on few documents ({num_documents}, at least {FEW_DOCUMENTS} wanted)")


def _curve_legend(record: Mapping[str, Any], values: Sequence[float | None], scale: tuple[float, float] | None) -> str:
    """Returns what the curves show; nothing where there are none."""
    num_lengths, same_tokens = len(record["lengths"]), record.get("same_tokens", True)
    if scale is None or num_lengths < 2:
        return ""
    form: Callable[[float], str] = perplexity_text if same_tokens else "{:.3f}".format
    (low, high), (least, most) = scale, curve_ends()
    drawn = len(chosen(num_lengths))
    lengths = "the lengths" if drawn == num_lengths else f"{drawn} of the {num_lengths} lengths"
    measure = "perplexity" if same_tokens else "bits per byte"
    more = " or more" if any(value is not None and value > high for value in values) else ""
    return f"curve: {measure} over {lengths}, log scale from {least} {form(low)} to {most} {form(high)}{more}"


def _failures(rows: Rows, names: Sequence[str]) -> list[Part]:
    return [
        Sentence(f"{name} failed: {message}", BAD)
        for name, row in zip(names, rows, strict=True)
        for message in row["errors"]
    ]


def _conclusions(record: Mapping[str, Any]) -> Iterator[Part]:
    pick = record["pick"]
    if pick:
        name = short_spec(pick["method"]) + (TUNED if pick.get("training") else "")
        if pick.get("model", record.get("model")) != record.get("model"):
            name = f"{model_names(record['models'])[pick['model']]} ({name})"
        yield Sentence(f"Pick: {name} ({'; '.join(pick['reasons'])}).")
    yield from (Sentence(sentence) for sentence in record.get("verdict", ()))


def _rows(names: Sequence[str], numbers: Sequence[Sequence[Cell]]) -> list[Row]:
    return [Row(name, [column[index] for column in numbers]) for index, name in enumerate(names)]


def _entry(entries: Rows, length: int, key: str) -> Mapping[str, Any] | None:
    return next((entry for entry in entries if entry[key] == length), None)


def _value(entries: Rows, length: int, key: str, value: str) -> float | None:
    entry = _entry(entries, length, key)
    return None if entry is None else entry[value]
