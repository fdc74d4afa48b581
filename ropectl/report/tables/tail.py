"""Protocol ``tail`` of a comparison: the same last tokens of each document, given more and more of what is before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ropectl.data.units import drawn_unit
from ropectl.records import ComparisonRecord, PerplexityPoint
from ropectl.report.document import BAD, GOOD, Cell, Table
from ropectl.report.tables.by_length import LengthGrid, MeasuredSubject, perplexities
from ropectl.report.tables.words import NOT_AVAILABLE, ends_text


def tail_tables(record: ComparisonRecord, subjects: Sequence[MeasuredSubject]) -> list[Table]:
    """Returns the perplexities by context, and what each context gains over the trained length; empty if not measured.

    Args:
        record: The comparison.
        subjects: Its rows.
    """
    own = [replace(each, perplexity=row.tail) for each, row in zip(subjects, record.rows, strict=True)]
    points = [point for each in own for point in each.perplexity]
    if not points:
        return []
    trained = record.geometry.original_max_position_embeddings
    keys = [each.compares for each in own]
    grid = LengthGrid(own, record.lengths, "method", trained, lambda _: keys, record.manifest.split)
    tables = [perplexities(grid, "Perplexity of the same last tokens, by context (L: trained)")]
    if any(point.gain_over_trained is not None for point in points):
        numbers = [[gain_cell(each.point(length)) for each in own] for length in grid.lengths]
        title = f"Gain of the same last tokens over {trained} tokens [nats a token]"
        unit = drawn_unit(record.manifest.split, record.manifest.clusters)
        about = f"In brackets the paired 95 % interval over {unit}s."
        tables.append(grid.table(title, grid.heads(), numbers, about))
    return [replace(table, is_detail=True) for table in tables]


def gain_cell(point: PerplexityPoint | None) -> Cell:
    """Returns by how much the loss is lower than given the trained length; coloured where the interval does not hold zero."""
    if point is None or point.gain_over_trained is None:
        return Cell(NOT_AVAILABLE)
    low, high = point.gain_ci_low, point.gain_ci_high
    tone = GOOD if low is not None and low > 0 else BAD if high is not None and high < 0 else ""
    gain = point.gain_over_trained
    return Cell(_gain_text(gain), tone=tone, value=gain, interval=ends_text(low, high, _gain_text))


def _gain_text(value: float) -> str:
    return f"{value + 0.0:+.4f}"
