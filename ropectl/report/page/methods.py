"""A section for each row of a comparison: what the method does, what it was given, and its own numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.errors import ConfigError
from ropectl.report.methods import guide_texts
from ropectl.report.page.blocks import Block, Cell, Commands, Facts, Figures, Hidden, Link, Row, Section, Table, Words
from ropectl.report.page.commands import row_commands
from ropectl.report.page.numbers import NOTHING, interval, number_cell, percent, reach_bars, share_interval, signed
from ropectl.report.tables import perplexity_text, row_names
from ropectl.rope.catalog import describe_method
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import find_method, parse_method
from ropectl.specs import format_value

_ARXIV = "https://arxiv.org/abs/"

#: Lists of numbers are told as their count beyond this many.
_MAX_LISTED = 8


def methods_section(record: Mapping[str, Any], curves: Mapping[str, Figures]) -> Section:
    """Returns one section a row.

    Args:
        record: Of a comparison.
        curves: Figures of trainings, by training id.
    """
    rows, names = record["rows"], row_names(record["rows"])
    seen: set[str] = set()
    sections = []
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        blocks: list[Block] = [reach_bars(row["reach"], record["target_length"], _trained(record), is_short=True)]
        described = [] if row["method"] in seen else method_blocks(row["method"])
        seen.add(row["method"])
        blocks = [*described, *blocks, *training_blocks(row, curves)]
        blocks.extend(number_tables(row))
        commands = row_commands(record, row)
        if commands:
            blocks.append(Hidden("Commands that give these numbers", [Commands(commands)]))
        badge = "pick" if index == _picked(record) else ""
        sections.append(Section(name, f"method-{index}", blocks, badge))
    return Section("Methods, one by one", "methods", sections)


def _trained(record: Mapping[str, Any]) -> int:
    length: int = record["geometry"]["original_max_position_embeddings"]
    return length


def _picked(record: Mapping[str, Any]) -> int | None:
    from ropectl.report.page.comparison import picked_row

    return picked_row(record)


def method_blocks(spec: str) -> list[Block]:
    """Returns what a method is, its formula, and its parameters as they were given."""
    try:
        kind = find_method(spec.partition(":")[0])
    except ConfigError:
        return [Words(f"{spec}: this version of ropectl knows no such method, so that it cannot be described.", "note")]
    entry = describe_method(kind)
    facts: list[tuple[str, str | Link]] = [("Formula", entry["formula"]), ("In a stock config", entry["native"])]
    blocks: list[Block] = [Words(text) for text in _paragraphs(entry["summary"])]
    blocks.append(Facts([("Reference", _reference(kind)), *facts], is_long=True))
    if guide := guide_texts(entry):
        blocks.append(Hidden("What it does to each pair, when it is worth using, what it costs", [_guide(guide)]))
    if entry["parameters"]:
        blocks.append(_parameter_table(spec, entry["parameters"]))
    return blocks


def _guide(texts: Mapping[str, str]) -> Facts:
    return Facts(list(texts.items()), is_long=True)


def _paragraphs(text: str | None) -> list[str]:
    """A docstring as sentences: its lines joined, its marks for code taken out."""
    parts = (text or "").replace("``", "").split("\n\n")
    return [" ".join(part.split()) for part in parts if part.strip()]


def _reference(kind: type[ScalingMethod]) -> str | Link:
    reference = kind.reference
    url = f"{_ARXIV}{reference.arxiv}" if reference.arxiv else reference.url
    if not url.startswith("https://"):
        return str(reference)
    return Link(str(reference), url)


def _parameter_table(spec: str, parameters: Sequence[Mapping[str, Any]]) -> Table:
    try:
        given: Mapping[str, Any] = parse_method(spec).model_dump()
    except ConfigError:
        given = {}
    rows = []
    for parameter in parameters:
        name, default = parameter["name"], parameter["default"]
        used = given.get(name, default)
        changed = name in given and used != default and not parameter["required"]
        cells = [
            Cell(_value(used), "best" if changed else ""),
            Cell("required" if parameter["required"] else _value(default)),
            Cell(parameter["unit"] or NOTHING),
            Cell(parameter["help"] or ""),
        ]
        rows.append(Row(name, cells))
    columns = ["parameter", "as used", "default", "unit", "meaning"]
    return Table(f"Parameters of {spec.partition(':')[0]}", columns, rows, words=(4,))


def _value(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, tuple | list) and len(value) > _MAX_LISTED:
        return f"{len(value)} values, {min(value):g} to {max(value):g}"
    return format_value(value)


def training_blocks(row: Mapping[str, Any], curves: Mapping[str, Figures]) -> list[Block]:
    """Returns what a row's training took, and how it went."""
    training = row["training"]
    if training is None:
        return []
    facts: list[tuple[str, str | Link]] = [
        (name, text)
        for name, text in (
            ("Training", training["id"]),
            ("Optimizer steps", _count(training["steps"])),
            ("Tokens predicted", _count(training["tokens"])),
            ("Time in steps", NOTHING if training["seconds"] is None else f"{training['seconds']:,.0f} s"),
            (
                "Loss of the last ten steps",
                NOTHING if training["last_loss"] is None else f"{training['last_loss']:.4f} nats",
            ),
        )
    ]
    found = curves.get(training["id"])
    checkpoint = Facts([("Checkpoint", training["checkpoint"] or NOTHING)], is_long=True)
    return [Words("Measured after a training of its own:"), Facts(facts), checkpoint, *([found] if found else [])]


def _count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def number_tables(row: Mapping[str, Any]) -> list[Block]:
    """Returns every number of a row with its interval and what it was measured on."""
    blocks: list[Block] = []
    if row["perplexity"]:
        blocks.append(perplexity_table("Perplexity, first N tokens of each document", row["perplexity"]))
    if row["tail"]:
        blocks.append(perplexity_table("Perplexity of the same last tokens, given N", row["tail"]))
    if row["passkey"]:
        blocks.append(passkey_table("Passkeys", row["passkey"]))
        blocks.append(Hidden("Passkeys by depth", [depth_table(row["passkey"])]))
    if not blocks:
        blocks.append(Words("Nothing was measured yet." if not row["errors"] else "Nothing could be measured.", "note"))
    return blocks


def perplexity_table(caption: str, points: Sequence[Mapping[str, Any]]) -> Table:
    """Returns perplexities with intervals and counts."""
    has_gain = any(point["gain_over_trained"] is not None for point in points)
    rows = []
    for point in points:
        nll = point["nll_sum"] / point["num_tokens"] if point["num_tokens"] else None
        cells = [
            number_cell(point["perplexity"], perplexity_text(point["perplexity"])),
            Cell(interval(point["ci_low"], point["ci_high"])),
            number_cell(nll, NOTHING if nll is None else f"{nll:.4f}"),
            number_cell(
                point["bits_per_byte"], NOTHING if point["bits_per_byte"] is None else f"{point['bits_per_byte']:.4f}"
            ),
            number_cell(point["num_tokens"], f"{point['num_tokens']:,}"),
            number_cell(point["num_documents"], f"{point['num_documents']:,}"),
        ]
        if has_gain:
            cells.append(_gain(point))
        rows.append(Row(f"{point['context_length']:,}{'*' if point['beyond_capacity'] else ''}", cells))
    columns = ["context", "perplexity", "95 % interval", "nats a token", "bits a byte", "tokens scored", "documents"]
    return Table(caption, [*columns, *(["gain over L"] if has_gain else [])], rows)


def _gain(point: Mapping[str, Any]) -> Cell:
    gain, low, high = point["gain_over_trained"], point["gain_ci_low"], point["gain_ci_high"]
    if gain is None:
        return Cell(NOTHING)
    return number_cell(
        gain, signed(gain), "", "" if low is None or high is None else f"{signed(low)} to {signed(high)}"
    )


def passkey_table(caption: str, entries: Sequence[Mapping[str, Any]]) -> Table:
    """Returns retrieval by length with intervals."""
    rows = []
    for entry in entries:
        logprob = entry["answer_logprob"]
        cells = [
            number_cell(entry["correct"], f"{entry['correct']}/{entry['trials']}"),
            number_cell(entry["accuracy"], percent(entry["accuracy"], 1)),
            Cell(share_interval(entry)),
            number_cell(logprob, NOTHING if logprob is None else f"{logprob:.3f}"),
        ]
        rows.append(Row(f"{entry['length']:,}{'*' if entry['beyond_capacity'] else ''}", cells))
    return Table(caption, ["length", "found", "accuracy", "95 % interval", "log p(answer) [nats]"], rows)


def depth_table(entries: Sequence[Mapping[str, Any]]) -> Table:
    """Returns retrieval by length and depth."""
    depths = sorted({cell["depth"] for entry in entries for cell in entry["depths"]})
    rows = []
    for entry in entries:
        found = {cell["depth"]: cell for cell in entry["depths"]}
        cells = [
            number_cell(found[d]["accuracy"], f"{found[d]['correct']}/{found[d]['trials']}")
            if d in found
            else Cell(NOTHING)
            for d in depths
        ]
        rows.append(Row(f"{entry['length']:,}", cells))
    return Table("Passkeys found by depth of the needle", ["length", *(percent(depth) for depth in depths)], rows)
