"""The view of ``compare-methods``: perplexity by length with its curve, passkeys, and how far each method reaches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ropectl.compare.differences import picked_index
from ropectl.data.units import drawn_unit, scored_units
from ropectl.evaluate.judging.statistics import independent_units
from ropectl.records import FEW_DOCUMENTS, ComparisonRecord, MethodRow
from ropectl.report.document import BAD, Cell, Column, Part, Sentence, Table, View
from ropectl.report.graphics import chosen, curve, curve_scale
from ropectl.report.tables.best import best_note
from ropectl.report.tables.by_length import (
    LengthGrid,
    MeasuredSubject,
    bits_per_byte,
    passkeys,
    perplexities,
)
from ropectl.report.tables.differences import EXPLAINED, MEASURES, difference_tables, references_of
from ropectl.report.tables.heat_maps import differing_maps
from ropectl.report.tables.reach import reach_legend, reaches
from ropectl.report.tables.tail import tail_tables
from ropectl.report.tables.words import (
    NOT_AVAILABLE,
    TUNED,
    beyond_legend,
    bits_text,
    model_names,
    perplexity_text,
    row_names,
)
from ropectl.rope.method import short_spec


def comparison_parts(record: ComparisonRecord) -> list[Part]:
    """Returns a comparison as tables: perplexity by length, then passkey retrieval and reach, then the conclusions."""
    names = row_names(record.rows)
    tables = comparison_tables(record)
    maps = differing_maps(record.rows, names)
    tail = tail_tables(record, subjects_of(record))
    apart = list(_differences(record))
    note = [EXPLAINED] if apart else []
    return [
        *tables[:-1], *tail, *maps, *apart, tables[-1], *legends(record, [*tables, *tail]), *note, *failures(record), *conclusions(record),
    ]  # fmt: skip


def _differences(record: ComparisonRecord) -> Iterator[Table]:
    """Yields the differences from each reference.

    A terminal shows losses against those that were asked for, or the pick; the first table has the changes from the baseline.
    """
    for index in references_of(record):
        is_shown = bool(index or record.manifest.config.get("against"))
        for measure in MEASURES:
            for table in difference_tables(record, index, [measure]):
                yield replace(table, is_detail=measure != "prefix" or not is_shown)


def comparison_tables(record: ComparisonRecord) -> list[Table]:
    """Returns perplexity, bits per byte if models use different tokenizers, passkeys if there are any, and reach, by row."""
    subjects = subjects_of(record)
    grid = LengthGrid(
        subjects,
        record.lengths,
        "method",
        record.geometry.original_max_position_embeddings,
        lambda _: [each.compares for each in subjects],
        record.manifest.split,
    )
    same_tokens = record.same_tokens
    tables = [perplexities(grid, "Perplexity by context (L: trained)", subjects[0])]
    if not same_tokens:
        tables.append(bits_per_byte(grid, "Bits per byte by context (L: trained)"))
    tables[-1] = _with_curves(tables[-1], grid, same_tokens)
    answered = [entry for each in subjects for entry in each.passkey]
    if answered:
        seeds = f", {len(answered[0].seeds)} seeds" if answered[0].seeds else ""
        tables.append(passkeys(grid, f"Passkeys, of {answered[0].trials} a length{seeds}"))
    return [*tables, reaches(grid, record.target_length)]


def subjects_of(record: ComparisonRecord) -> list[MeasuredSubject]:
    """Returns the rows of a comparison as subjects."""
    rows, picked = record.rows, picked_row(record)
    same_tokens = record.same_tokens
    missing = record.unfinished.by_row if record.unfinished else []
    return [
        MeasuredSubject(
            name,
            row.perplexity,
            row.passkey,
            row.reach,
            None if same_tokens else row.model,
            row.short_delta,
            (row.short_delta_ci_low, row.short_delta_ci_high),
            row.seconds,
            href=f"method-{index}",
            is_pick=index == picked,
            note=_lacks(row, missing[index] if index < len(missing) else 0),
            clusters=record.manifest.clusters or None,
        )
        for index, (row, name) in enumerate(zip(rows, row_names(rows), strict=True))
    ]


def _lacks(row: MethodRow, missing: int) -> str:
    if missing:
        return f"{missing} cell{'s' if missing > 1 else ''} missing"
    return "failed in part" if row.errors else ""


def picked_row(record: ComparisonRecord) -> int | None:
    """Returns the index of the picked row; None if nothing is picked."""
    return picked_index(record.rows, record.pick)


def _with_curves(table: Table, grid: LengthGrid, same_tokens: bool) -> Table:
    """Returns the table with a curve of the numbers in each row, all on the same scale."""
    scale = curve_scale(_drawn(grid.subjects, grid.lengths, same_tokens))
    lengths = [grid.lengths[index] for index in chosen(len(grid.lengths))]
    if scale is None or len(lengths) < 2:
        return table
    rows = [
        replace(row, cells=[*row.cells, Cell(curve(_drawn([each], lengths, same_tokens), scale))])
        for row, each in zip(table.rows, grid.subjects, strict=True)
    ]
    return replace(table, columns=[*table.columns, Column("curve", is_drawing=True)], rows=rows)


def _drawn(subjects: Sequence[MeasuredSubject], lengths: Sequence[int], same_tokens: bool) -> list[float | None]:
    return [each.value(n) if same_tokens else each.bits(n) for each in subjects for n in lengths]


def legends(record: ComparisonRecord, tables: Sequence[Table]) -> Iterator[Part]:
    """Yields what the marks and the missing numbers of the tables mean."""
    rows, same_tokens = record.rows, record.same_tokens
    manifest = record.manifest
    if manifest.documents:
        scored = scored_units(len(manifest.documents), manifest.split, manifest.clusters)
        yield Sentence(f"{scored} of {record.text}")
    yield from best_note(tables, "" if same_tokens else "; perplexities compare within a model only")
    yield from beyond_legend(
        (point.beyond_capacity for row in rows for point in row.perplexity),
        (entry.beyond_capacity for row in rows for entry in row.passkey),
    )
    yield from reach_legend(
        dict(zip(row_names(rows), (row.reach for row in rows), strict=True)),
        record.geometry.original_max_position_embeddings,
        unit := drawn_unit(manifest.split, manifest.clusters),
    )
    if not same_tokens:
        yield Sentence("Models read the text in different tokens: bits per byte compare them, perplexities do not.")
    yield from _curve_legend(record)
    units = max(
        (independent_units(point.num_documents, manifest.clusters) for row in rows for point in row.tail), default=0
    )
    if 0 < units < FEW_DOCUMENTS:
        text = f"models: judged on few {unit}s ({units}, at least {FEW_DOCUMENTS} wanted)"
        yield Sentence(text, concerns=["models"])


def _curve_legend(record: ComparisonRecord) -> Iterator[Part]:
    """Yields what the lowest and the highest block of the curves are, in numbers of the table."""
    num_lengths, same_tokens = len(record.lengths), record.same_tokens
    values = _drawn(subjects_of(record), record.lengths, same_tokens)
    scale = curve_scale(values)
    if scale is None or num_lengths < 2:
        return
    form: Callable[[float], str] = perplexity_text if same_tokens else bits_text
    known = sorted(value for value in values if value is not None and value > 0 and math.isfinite(value))
    low, high, more = known[0], known[-1], ""
    if high > scale[1]:  # the highest block is for this number and everything above it
        high, more = next(value for value in known if curve([value], scale) == curve([high], scale)), " or more"
    ends = [f"{curve([value], scale)} {form(value)}" for value in (low, high)]
    drawn = len(chosen(num_lengths))
    lengths = "the lengths" if drawn == num_lengths else f"{drawn} of the {num_lengths} lengths"
    measure = "perplexity" if same_tokens else "bits per byte"
    text = f"curve: {measure} over {lengths}, log scale from {' to '.join(ends)}{more}"
    yield Sentence(text, explains_drawing=True)


def failures(record: ComparisonRecord) -> list[Sentence]:
    """Returns what failed, with the message of each failure."""
    return [
        Sentence(f"{name} failed: {message}", BAD, concerns=[NOT_AVAILABLE])
        for name, row in zip(row_names(record.rows), record.rows, strict=True)
        for message in row.errors
    ]


def conclusions(record: ComparisonRecord) -> Iterator[Sentence]:
    """Yields the pick with its reasons, then the verdict."""
    pick = record.pick
    if pick:
        name = short_spec(pick.method) + (TUNED if pick.training else "")
        if pick.model != record.model:
            name = f"{model_names(record.models)[pick.model]} ({name})"
        yield Sentence(f"Pick: {name} ({'; '.join(pick.reasons)}).")
        if pick.tied:
            others = ", ".join(row_names(record.rows)[index] for index in pick.tied)
            yield Sentence(f"Not told apart from it by the rule: {others}.")
    yield from (Sentence(sentence) for sentence in record.verdict)


VIEW = View(comparison_parts, "How far {model} reaches", has_values=True, is_headed=False)
