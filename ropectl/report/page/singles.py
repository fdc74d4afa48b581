"""Sections for the records of single measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.page.blocks import Block, Cell, Facts, Hidden, Link, Points, Row, Section, Table, Words
from ropectl.report.page.methods import depth_table, method_blocks, passkey_table, perplexity_table
from ropectl.report.page.numbers import BEYOND, LONGEST, MADE_FOR, NOTHING, number_cell, percent, reach_bars, tokens
from ropectl.report.page.text import sentences
from ropectl.rope.method import short_spec

#: More pairs than this are shown only when asked for.
_FEW_PAIRS = 16


def method_section(record: Mapping[str, Any]) -> Section:
    """Returns what the method of a record is."""
    return Section(f"Method: {short_spec(record['method'])}", "method", method_blocks(record["method"]))


def perplexity_sections(record: Mapping[str, Any]) -> list[Section]:
    """Returns verdict, numbers and protocol of ``eval-perplexity``."""
    trained = record["geometry"]["original_max_position_embeddings"]
    bos = record["bos"]
    verdict: list[Block] = [Words(sentences([sentence]), "lead") for sentence in record["verdict"]]
    reach = record.get("reach")
    longest = max(point["context_length"] for point in record["points"])
    if isinstance(reach, Mapping) and isinstance(reach.get("models"), int):
        verdict.append(reach_bars({"models": reach["models"]}, max(longest, trained), trained, aim=LONGEST))
    if not verdict:
        known = [point for point in record["points"] if point["perplexity"] is not None]
        best = min(known, key=lambda point: point["perplexity"], default=None)
        if best is not None:
            text = f"Lowest perplexity {best['perplexity']:.4g}, at {best['context_length']:,} tokens; trained length {trained:,}."
            verdict.append(Words(text, "lead"))
    tables: list[Block] = [
        perplexity_table(f"Protocol {record['protocol']}, {short_spec(record['method'])}", record["points"])
    ]
    if record["unscaled"]:
        tables.append(perplexity_table("The unscaled model on the same targets", record["unscaled"]))
    if any(point["beyond_capacity"] for point in record["points"]):
        tables.append(Words(BEYOND, "note"))
    bins = next((point for point in reversed(record["points"]) if point["positions"]), None)
    if bins is not None:
        tables.append(Hidden(f"Loss by position in {bins['context_length']:,} tokens", [_position_table(bins)]))
    documents = record["manifest"].get("documents") or []
    facts: list[tuple[str, str | Link]] = [
        ("Protocol", record["protocol"]),
        ("Preset", record["preset"] or NOTHING),
        ("Stride", tokens(record["stride"], NOTHING)),
        ("Text", record["text"]),
        ("Documents", f"{len(documents):,}"),
        ("Windows begin with", str(bos.get("token") or "no beginning-of-sequence token")),
        ("BOS policy", str(bos.get("policy", NOTHING))),
    ]
    protocol: list[Block] = [Facts(facts)]
    if documents:
        protocol.append(Hidden(f"The {len(documents)} documents", [Points([str(name) for name in documents])]))
    return [
        Section("Verdict", "verdict", verdict or [Words("Nothing could be scored.", "lead")]),
        Section("Numbers", "numbers", tables),
        Section("Protocol", "protocol", protocol),
    ]


def _position_table(point: Mapping[str, Any]) -> Table:
    rows = []
    for part in point["positions"]:
        mean = part["nll_sum"] / part["num_tokens"] if part["num_tokens"] else None
        cells = [
            number_cell(mean, NOTHING if mean is None else f"{mean:.4f}"),
            number_cell(part["num_tokens"], f"{part['num_tokens']:,}"),
        ]
        rows.append(Row(f"{part['start']:,} to {part['end'] - 1:,}", cells))
    return Table("Mean loss of the targets at these positions", ["position", "nats a token", "tokens"], rows)


def passkey_sections(record: Mapping[str, Any]) -> list[Section]:
    """Returns verdict, numbers and protocol of ``eval-passkey``."""
    entries, trained = record["lengths"], record["geometry"]["original_max_position_embeddings"]
    longest = max(entry["length"] for entry in entries)
    verdict: list[Block] = [Words(sentences([record["verdict"]]), "lead")]
    verdict.append(reach_bars({"uses": record["reach"].get("uses")}, max(longest, trained), trained, aim=LONGEST))
    k_max = [f"k_max at {_share(key)}: {tokens(value)}" for key, value in record["k_max"].items()]
    if k_max:
        verdict.append(Points(k_max))
    config = record["manifest"].get("config")
    config = config if isinstance(config, Mapping) else {}
    facts: list[tuple[str, str | Link]] = [
        ("Grid", record["grid"]),
        ("Prompts a length and depth", str(config.get("trials", NOTHING))),
        ("Seed", str(config.get("seed", NOTHING))),
        ("Other labelled keys", str(config.get("distractors", NOTHING))),
        ("Prompt format", str(record.get("prompt_format", NOTHING))),
        ("Prompts, SHA-256", str(record["manifest"].get("prompts_sha256", NOTHING))[:16] + "\u2026"),
    ]
    numbers: list[Block] = [passkey_table("Over all needles", entries), depth_table(entries)]
    if any(entry["beyond_capacity"] for entry in entries):
        numbers.append(Words(BEYOND, "note"))
    return [
        Section("Verdict", "verdict", verdict),
        Section("Numbers", "numbers", numbers),
        Section("Protocol", "protocol", [Facts(facts)]),
    ]


def _share(text: str) -> str:
    try:
        return percent(float(text))
    except ValueError:
        return text


def tasks_sections(record: Mapping[str, Any]) -> list[Section]:
    """Returns verdict and numbers of ``eval-tasks``."""
    tasks, trained = record["tasks"], record["geometry"]["original_max_position_embeddings"]
    lengths = sorted({entry["length"] for task in tasks for entry in task["lengths"]})
    rows = []
    for task in tasks:
        found = {entry["length"]: entry for entry in task["lengths"]}
        cells = [_score(found.get(length)) for length in lengths]
        uses = task["uses"]
        cells.append(number_cell(uses, NOTHING if uses is None else f"{uses:,}" if uses else "none"))
        cells.append(Cell(task["metric"]))
        rows.append(Row(task["task"], cells))
    if len(tasks) > 1:
        found = {entry["length"]: entry for entry in record["average"]}
        means = [
            number_cell(found[n]["score"], percent(found[n]["score"])) if n in found else Cell(NOTHING) for n in lengths
        ]
        rows.append(Row("average", [*means, Cell(""), Cell("")]))
    uses = record["reach"].get("uses")
    uses = None if uses is None else int(uses)
    wanted = percent(record["reach"].get("used_score"))
    verdict: list[Block] = [
        Words(
            f"Uses {tokens(uses)}: at least {wanted} on average at every length from the trained one up to it.", "lead"
        ),
        reach_bars({"uses": uses}, max([*lengths, trained]), trained, aim=LONGEST),
    ]
    table = Table("Score, 95 % interval", ["task", *(f"{n:,}" for n in lengths), "uses", "metric"], rows)
    notes = (
        "exact: every answer token is the most likely one. contained: share of the references in the generated text."
    )
    return [Section("Verdict", "verdict", verdict), Section("Numbers", "numbers", [table, Words(notes, "note")])]


def _score(entry: Mapping[str, Any] | None) -> Cell:
    if entry is None:
        return Cell(NOTHING)
    bounds = f"{100 * entry['ci_low']:.0f}\u2013{100 * entry['ci_high']:.0f}\u2009%, {entry['trials']} prompts"
    return number_cell(entry["score"], percent(entry["score"]), "", bounds)


def inspection_sections(record: Mapping[str, Any]) -> list[Section]:
    """Returns what a method computes on a geometry."""
    geometry = record["geometry"]
    trained = geometry.get("original_max_position_embeddings") or record["target_length"]
    target = max(record["target_length"], trained, 1)
    facts: list[tuple[str, str | Link]] = [(str(name), str(value)) for name, value in geometry.items()]
    facts.append(("attention factor", f"{record['attention_factor']:.6f}"))
    facts.append(("first critical pair", str(record["critical_dimension"])))
    pairs = _pairs(record)
    verdict: list[Block] = [
        reach_bars({"computes": record["reach"]}, target, trained, aim=MADE_FOR),
        *(Words(warning, "warning") for warning in record["warnings"]),
    ]
    numbers: list[Block] = [Facts(facts)]
    numbers.append(pairs if len(pairs.rows) <= _FEW_PAIRS else Hidden(f"All {len(pairs.rows)} rotary pairs", [pairs]))
    return [Section("Reach", "verdict", verdict), Section("Numbers", "numbers", numbers)]


def _pairs(record: Mapping[str, Any]) -> Table:
    columns = [record[name] for name in ("inv_freq", "wavelengths", "rotations", "divisors")]
    rows = []
    for pair, values in enumerate(zip(*columns, strict=False)):
        cells = [number_cell(value, "stands still" if value is None else f"{value:,.6g}") for value in values]
        rows.append(Row(str(pair), cells))
    return Table("Rotary pairs", ["pair", "inv_freq [rad/token]", "wavelength [tokens]", "turns in L", "divisor"], rows)


def harness_sections(record: Mapping[str, Any]) -> list[Section]:
    """Returns the results of lm-evaluation-harness."""
    rows = []
    for task, values in record["results"].items():
        for key, value in values.items():
            metric, _, filtered = str(key).partition(",")
            if metric.endswith("_stderr") or not isinstance(value, int | float) or isinstance(value, bool):
                continue
            error = values.get(f"{metric}_stderr,{filtered}")
            shown = f"{error:.4f}" if isinstance(error, int | float) else NOTHING
            rows.append(Row(str(task), [Cell(metric), number_cell(value, f"{value:.4f}"), Cell(shown)]))
    table = Table("lm-evaluation-harness", ["task", "metric", "value", "standard error"], rows)
    return [Section("Numbers", "numbers", [table])]
