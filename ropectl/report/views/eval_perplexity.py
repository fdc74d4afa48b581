"""The view of ``eval-perplexity``, and the tables of perplexities that the page shows of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ropectl.data.units import drawn_unit, scored_units, unit_name
from ropectl.evaluate.perplexity.presets import PRESETS
from ropectl.records import PerplexityPoint, PerplexityRecord, PositionBin
from ropectl.report.document import Cell, Column, Part, Row, Sentence, Table, View, cells, columns
from ropectl.report.tables.counts import IN_COLUMN, scored
from ropectl.report.tables.reach import verdict_tables
from ropectl.report.tables.tail import gain_cell
from ropectl.report.tables.words import NOT_AVAILABLE, beyond_legend, beyond_mark, perplexity_interval, perplexity_text

#: Bins of positions before this one are shown as one line [tokens]: in short contexts, texts differ and methods do not.
FIRST_SHOWN_POSITION = 16


def perplexity_parts(record: PerplexityRecord) -> list[Part]:
    """Returns perplexities with what they depend on, then what else the protocol measures, then the verdict."""
    conditions = [Sentence(line) for line in _conditions(record)]
    tables = perplexity_tables(record)
    legend = beyond_legend(point.beyond_capacity for point in record.points)
    return [tables[0], *conditions, *legend, *tables[1:], *map(Sentence, record.verdict)]


def perplexity_tables(record: PerplexityRecord) -> list[Table]:
    """Returns perplexity by context, and what else the protocol measures."""
    points, stride = record.points, f", stride {record.stride}" if record.stride else ""
    preset = f", preset {record.preset}" if record.preset else ""
    title = f"Perplexity, protocol {record.protocol}{stride}{preset}"
    split, clusters = record.manifest.split, record.manifest.clusters
    main = points_table(title, points, unit_name(split), _shows_mean(record))
    tables = [replace(main, about=scored(points, split, clusters, IN_COLUMN))]
    if record.protocol == "key-tokens":
        tables.append(_key_table(points))
    tables.extend(gain_tables(points, record.geometry.original_max_position_embeddings))
    tables.extend(verdict_tables({"models": record.reach.models_at}, drawn_unit(split, clusters)))
    tables.extend([_position_table(point) for point in points if point.positions][-1:])
    return tables


def _shows_mean(record: PerplexityRecord) -> bool:
    return record.preset in PRESETS and PRESETS[record.preset].shows_window_mean


def points_table(title: str, points: Sequence[PerplexityPoint], unit: str, shows_mean: bool = False) -> Table:
    """Returns perplexities with their intervals, and what they were measured on.

    Args:
        title: Of the table.
        points: One a row.
        unit: What was scored, in the singular: ``document`` or ``window``.
        shows_mean: Whether to add the mean over windows, which some scripts print.
    """
    mean = [Column("window mean")] if shows_mean else []
    heads = [
        *(Column("perplexity"), *mean, Column("95 % interval"), Column("nats a token", is_detail=True)),
        *(Column("bits/byte"), Column("tokens"), Column(f"{unit}s", is_detail=True)),
    ]
    rows = []
    for point in points:
        window_mean = [perplexity_text(point.window_mean_perplexity)] if shows_mean else []
        loss, bits = point.nll_sum / point.num_tokens if point.num_tokens else None, point.bits_per_byte
        texts = [
            *(perplexity_text(point.perplexity), *window_mean, perplexity_interval(point.ci_low, point.ci_high)),
            *(NOT_AVAILABLE if number is None else f"{number:.4f}" for number in (loss, bits)),
            *(str(point.num_tokens), str(point.num_documents)),
        ]
        rows.append(Row(_context(point), cells(texts)))
    return Table(title, "context", heads, rows)


def _context(point: PerplexityPoint) -> str:
    return f"{point.context_length}{beyond_mark(point.beyond_capacity)}"


def _conditions(record: PerplexityRecord) -> list[str]:
    """Returns what the numbers depend on, as sentences."""
    bos, manifest = record.bos, record.manifest
    begins = f"begins with {bos.token}, never scored" if bos.token else "begins without a BOS token"
    units = scored_units(len(manifest.documents), manifest.split, manifest.clusters)
    size = f" ({manifest.split} tokens each)" if manifest.split is not None else ""
    lines = [f"{units} of {record.text}{size}; every window {begins} (--bos {bos.policy})."]
    if record.preset and _shows_mean(record):
        lines.append(
            f"window mean: exp of the mean of each window's mean loss, as in {PRESETS[record.preset].reference}; "
            "perplexity: weighted by token."
        )
    return lines


def gain_tables(points: Sequence[PerplexityPoint], trained: int) -> list[Table]:
    """Returns how much lower the loss of the same targets is than in a context of the trained length; empty if not measured.

    Args:
        points: One a row.
        trained: L [tokens].
    """
    if all(point.gain_over_trained is None for point in points):
        return []
    rows = []
    for point in points:
        gain = gain_cell(point)
        ends = NOT_AVAILABLE if gain.interval is None else " to ".join(gain.interval)
        rows.append(Row(_context(point), [replace(gain, interval=None), Cell(ends)]))
    heads = columns(["gain", "95 % interval"])
    about = "How much lower the mean loss of the same targets is; paired 95 % intervals."
    return [Table(f"Gain over {trained} tokens [nats a token]", "context", heads, rows, about=about)]


def _key_table(points: Sequence[PerplexityPoint]) -> Table:
    heads = ["short context", "candidates", "key tokens", "share", "perplexity of all"]
    rows = []
    for point in points:
        candidates = point.num_candidates
        texts = [
            str(point.short_context or NOT_AVAILABLE),
            str(candidates or NOT_AVAILABLE),
            str(point.num_tokens),
            f"{point.num_tokens / candidates:.2%}" if candidates else NOT_AVAILABLE,
            perplexity_text(point.candidates_perplexity),
        ]
        rows.append(Row(_context(point), cells(texts)))
    return Table("Key tokens", "context", columns(heads), rows)


def _position_table(point: PerplexityPoint) -> Table:
    """Returns a line for each octave, from the two bins of each in the record."""
    octaves: dict[int, list[PositionBin]] = {}
    for part in point.positions:
        octave = max(FIRST_SHOWN_POSITION // 2, 1 << (part.start.bit_length() - 1))
        octaves.setdefault(1 if octave < FIRST_SHOWN_POSITION else octave, []).append(part)
    rows = []
    for first, bins in octaves.items():
        num_tokens = sum(part.num_tokens for part in bins)
        loss = f"{sum(part.nll_sum for part in bins) / num_tokens:.4f}" if num_tokens else NOT_AVAILABLE
        rows.append(Row(f"{first} to {bins[-1].end - 1}", cells([loss, str(num_tokens)])))
    heads = columns(["nats a token", "tokens"])
    return Table(f"Loss by position in {point.context_length} tokens", "position", heads, rows)


VIEW = View(perplexity_parts, "Perplexity of {model}", has_values=True)
