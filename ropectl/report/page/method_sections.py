"""A section for each row of a comparison: what the method does, its parameters, and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ropectl.data.units import drawn_unit, unit_name
from ropectl.errors import ConfigError
from ropectl.records import ComparisonRecord, MethodRow, to_json
from ropectl.report.blocks import Block, Commands, Figures, Hidden, Section
from ropectl.report.document import GOOD, NOTE, Cell, Column, Row, Sentence, Table, facts
from ropectl.report.page.commands import row_commands
from ropectl.report.page.reach_bars import reach_bars
from ropectl.report.page.trainings import training_rows
from ropectl.report.tables.reach import verdict_tables
from ropectl.report.tables.words import NONE_MARK, NOT_AVAILABLE, row_names
from ropectl.report.views.compare_methods import picked_row
from ropectl.report.views.eval_passkey import passkey_tables
from ropectl.report.views.eval_perplexity import gain_tables, points_table
from ropectl.report.views.methods import guide_texts, method_facts, summary_of
from ropectl.rope.catalog import parameters_of
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import find_method, parse_method
from ropectl.specs import format_value

_ARXIV = "https://arxiv.org/abs/"

#: Longer lists of numbers are shown as a count and a range.
_MAX_LISTED = 8


def methods_section(record: ComparisonRecord, curves: Mapping[str, Figures]) -> Section:
    """Returns one section for each row.

    Args:
        record: The comparison.
        curves: Figures of trainings, by training id.
    """
    trained, unit = record.geometry.original_max_position_embeddings, unit_name(record.manifest.split)
    seen: set[str] = set()
    sections = []
    for index, (row, name) in enumerate(zip(record.rows, row_names(record.rows), strict=True)):
        blocks = [] if row.method in seen else method_blocks(row.method)
        seen.add(row.method)
        blocks.append(reach_bars(to_json(row.reach), record.target_length, trained, is_short=True))
        blocks += [*_training(row, curves), *_numbers(row, trained, unit)]
        judged = {"models": row.reach.models_at, "uses": row.reach.uses_at}
        blocks += verdict_tables(judged, drawn_unit(record.manifest.split, record.manifest.clusters))
        commands = row_commands(record, row)
        if commands:
            blocks.append(Hidden("Commands that give these numbers", [Commands(commands)]))
        badge = "pick" if index == picked_row(record) else ""
        sections.append(Section(name, f"method-{index}", blocks, badge))
    return Section("Methods, one by one", "methods", sections)


def method_blocks(spec: str) -> list[Block]:
    """Returns what a method is, its formula, and its parameters as they were given."""
    try:
        kind = find_method(spec.partition(":")[0])
    except ConfigError:
        return [Sentence(f"{spec}: this version of ropectl does not know this method and cannot describe it.", NOTE)]
    blocks: list[Block] = [*map(Sentence, summary_of(kind)), _with_link(facts("", method_facts(kind)), kind)]
    if guide := guide_texts(kind):
        blocks.append(
            Hidden("What it does to each pair, when it is worth using, what it costs", [facts("", guide.items())])
        )
    if kind.model_fields:
        blocks.append(_parameter_table(spec, kind))
    return blocks


def _with_link(table: Table, kind: type[ScalingMethod]) -> Table:
    """Returns the facts of a method, with a link to the reference if it has an address."""
    url = f"{_ARXIV}{kind.reference.arxiv}" if kind.reference.arxiv else kind.reference.url
    if not url.startswith("https://"):
        return table
    rows = [
        replace(row, cells=[replace(row.cells[0], url=url)]) if row.name == "Reference" else row for row in table.rows
    ]
    return replace(table, rows=rows)


def _parameter_table(spec: str, kind: type[ScalingMethod]) -> Table:
    try:
        given: Mapping[str, Any] = parse_method(spec).model_dump()
    except ConfigError:
        given = {}
    rows = []
    for parameter in parameters_of(kind):
        used = given.get(parameter.name, parameter.default)
        is_changed = parameter.name in given and used != parameter.default and not parameter.required
        cells = [
            Cell(_value(used), tone=GOOD if is_changed else ""),
            Cell("required" if parameter.required else _value(parameter.default)),
            Cell(parameter.unit or NONE_MARK),
            Cell(parameter.help or ""),
        ]
        rows.append(Row(parameter.name, cells))
    heads = [*map(Column, ("as used", "default", "unit")), Column("meaning", is_text=True)]
    return Table(f"Parameters of {spec.partition(':')[0]}", "parameter", heads, rows)


def _value(value: Any) -> str:
    if value is None:
        return NONE_MARK
    if isinstance(value, tuple | list) and len(value) > _MAX_LISTED:
        return f"{len(value)} values, {min(value):g} to {max(value):g}"
    return format_value(value)


def _training(row: MethodRow, curves: Mapping[str, Figures]) -> list[Block]:
    """Returns the training of a row: what it took, and its curves."""
    training = row.training
    if training is None:
        return []
    checkpoint = ("Checkpoint", training.checkpoint or NOT_AVAILABLE)
    rows = [("Training", training.id), *training_rows(training), checkpoint]
    found = curves.get(training.id)
    return [Sentence("Measured after its own training:"), facts("", rows), *([found] if found else [])]


def _numbers(row: MethodRow, trained: int, unit: str) -> list[Block]:
    """Returns every number of a row with its interval and what it was measured on."""
    blocks: list[Block] = []
    if row.perplexity:
        blocks.append(points_table(f"Perplexity, first N tokens of each {unit}", row.perplexity, unit))
    if row.tail:
        blocks.append(points_table("Perplexity of the same last tokens, given N", row.tail, unit))
        blocks.extend(gain_tables(row.tail, trained))
    if row.passkey:
        by_depth, by_length = passkey_tables(row.passkey)
        blocks += [by_length, Hidden("Passkeys by depth", [by_depth])]
    nothing = "Nothing could be measured." if row.errors else "Nothing was measured yet."
    return blocks or [Sentence(nothing, NOTE)]
