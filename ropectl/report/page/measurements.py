"""Sections for the records of single measurements, around the tables that the terminal shows."""

from __future__ import annotations

from dataclasses import replace

from ropectl.data.units import counted, scored_units, unit_name
from ropectl.lengths import lengths_text
from ropectl.records import (
    ComparisonManifest,
    HarnessRecord,
    InspectionRecord,
    PasskeyRecord,
    PerplexityManifest,
    PerplexityRecord,
    RuntimeCheckRecord,
    TasksRecord,
    to_json,
)
from ropectl.report.blocks import Block, Hidden, Points, Section
from ropectl.report.document import LEAD, NOTE, WARNING, Sentence, Table, facts
from ropectl.report.page.method_sections import method_blocks
from ropectl.report.page.reach_bars import LONGEST, MADE_FOR, reach_bars
from ropectl.report.tables.runtimes import runtime_parts
from ropectl.report.tables.words import NOT_AVAILABLE, beyond_legend, perplexity_text, sentences, setting_text
from ropectl.report.views.eval_passkey import passkey_tables, remarks
from ropectl.report.views.eval_perplexity import perplexity_tables, points_table
from ropectl.report.views.eval_tasks import tasks_parts
from ropectl.report.views.harness_results import harness_parts
from ropectl.report.views.inspect import MAX_ROWS, inspection_facts, pairs_table
from ropectl.report.views.task_previews import METRIC_NOTES
from ropectl.report.views.verify_runtime import runtime_check_parts, verdict_sentences
from ropectl.rope.method import short_spec


def method_section(method: str) -> Section:
    """Returns what the method of a record is."""
    return Section(f"Method: {short_spec(method)}", "method", method_blocks(method))


def perplexity_sections(record: PerplexityRecord) -> list[Section]:
    """Returns verdict, numbers and protocol of ``eval-perplexity``."""
    points, trained = record.points, record.geometry.original_max_position_embeddings
    verdict: list[Block] = [Sentence(sentences([sentence]), LEAD) for sentence in record.verdict]
    if record.reach.models is not None:
        longest = max(trained, *(point.context_length for point in points))
        verdict.append(reach_bars(to_json(record.reach), longest, trained, aim=LONGEST))
    main, *others = perplexity_tables(record)
    tables: list[Block] = [replace(main, title=f"{main.title}, {short_spec(record.method)}")]
    if record.unscaled:
        unit = unit_name(record.manifest.split)
        tables.append(points_table("The unscaled model on the same targets", record.unscaled, unit))
    legend = [replace(part, tone=NOTE) for part in beyond_legend(point.beyond_capacity for point in points)]
    return [
        Section("Verdict", "verdict", verdict or [_lowest(record)]),
        Section("Numbers", "numbers", [*tables, *legend, *others]),
        _protocol(record),
    ]


def _lowest(record: PerplexityRecord) -> Sentence:
    """Returns a sentence for protocols without a verdict."""
    trained = record.geometry.original_max_position_embeddings
    known = {point.perplexity: point.context_length for point in record.points if point.perplexity is not None}
    if not known:
        return Sentence("Nothing could be scored.", LEAD)
    text = (
        f"Lowest perplexity {perplexity_text(min(known))}, at {known[min(known)]:,} tokens; trained length {trained:,}."
    )
    return Sentence(text, LEAD)


def _protocol(record: PerplexityRecord) -> Section:
    bos = record.bos
    rows = (
        ("Protocol", record.protocol),
        ("Preset", setting_text(record.preset)),
        ("Stride [tokens]", setting_text(record.stride)),
        ("Text", record.text),
        *units_scored(len(record.manifest.documents), record.manifest),
        ("Windows begin with", bos.token or "no beginning-of-sequence token"),
        ("BOS policy", bos.policy or NOT_AVAILABLE),
    )
    return Section("Protocol", "protocol", [facts("", rows), *unit_list(record.manifest)])


def units_scored(count: int, manifest: PerplexityManifest | ComparisonManifest) -> list[tuple[str, str]]:
    """Returns as facts how many documents were scored, or how many windows of how many tokens.

    Args:
        count: Documents or windows.
        manifest: What it says about them.
    """
    split = manifest.split
    if split is None:
        return [("Documents scored", str(count))]
    units = scored_units(count, split, manifest.clusters)
    return [("Windows scored", f"{units}, evenly spread over each"), ("Tokens of a window", f"{split:,}")]


def unit_list(manifest: PerplexityManifest | ComparisonManifest) -> list[Block]:
    """Returns the names of the documents or windows, folded; empty if there are none."""
    names = manifest.documents
    return [Hidden(f"The {counted(len(names), unit_name(manifest.split))}", [Points(names)])] if names else []


def passkey_sections(record: PasskeyRecord) -> list[Section]:
    """Returns verdict, numbers and protocol of ``eval-passkey``."""
    trained, config = record.geometry.original_max_position_embeddings, record.manifest.config
    longest = max(trained, *(entry.length for entry in record.lengths))
    verdict: list[Block] = [
        Sentence(sentences([record.verdict]), LEAD),
        reach_bars(to_json(record.reach), longest, trained, aim=LONGEST),
    ]
    rows = (
        ("Grid", record.grid),
        ("Prompts a length and depth", setting_text(config.get("trials"))),
        ("Seed", setting_text(config.get("seed"))),
        ("Other labelled keys", setting_text(config.get("distractors"))),
        ("Prompt format", record.prompt_format),
        ("Prompts, SHA-256", hash_text(record.manifest.prompts_sha256)),
    )
    return [
        Section("Verdict", "verdict", verdict),
        Section("Numbers", "numbers", [*reversed(passkey_tables(record.lengths, record.grid)), *remarks(record)]),
        Section("Protocol", "protocol", [facts("", rows)]),
    ]


def hash_text(sha256: str | None) -> str:
    """Returns the beginning of a hash, which is enough to compare two of them by eye."""
    return NOT_AVAILABLE if sha256 is None else f"{sha256[:16]}\u2026"


def tasks_sections(record: TasksRecord) -> list[Section]:
    """Returns verdict and numbers of ``eval-tasks``."""
    trained, reach = record.geometry.original_max_position_embeddings, record.reach
    longest = max([trained, *(entry.length for entry in record.average)])
    uses = "not judged" if reach.uses is None else f"{reach.uses:,} tokens" if reach.uses else "no evaluated length"
    wanted = NOT_AVAILABLE if reach.used_score is None else f"{reach.used_score:.0%}"
    measured = (
        f", measured at {lengths_text(found)} tokens" if (found := [each.length for each in record.average]) else ""
    )
    text = f"Uses {uses}{measured}: at least {wanted} on average at each of them from the trained length up to it."
    verdict: list[Block] = [Sentence(text, LEAD), reach_bars(to_json(reach), longest, trained, aim=LONGEST)]
    return [
        Section("Verdict", "verdict", verdict),
        Section("Numbers", "numbers", [*tasks_parts(record), Sentence(" ".join(METRIC_NOTES), NOTE)]),
    ]


def inspection_sections(record: InspectionRecord) -> list[Section]:
    """Returns what a method computes for a geometry."""
    trained = record.geometry.original_max_position_embeddings
    bars = reach_bars({"computes": record.reach}, max(record.target_length, trained), trained, aim=MADE_FOR)
    pairs, count = replace(pairs_table(record), title="Rotary pairs"), len(record.inv_freq)
    numbers: list[Block] = [
        Points(inspection_facts(record)),
        pairs if count <= MAX_ROWS else Hidden(f"All {count} rotary pairs", [pairs]),
    ]
    for part in runtime_parts(record.runtimes) if record.runtimes else ():
        numbers.append(replace(part, title="In other programs") if isinstance(part, Table) else part)
    return [
        Section("Reach", "verdict", [bars, *(Sentence(warning, WARNING) for warning in record.warnings)]),
        Section("Numbers", "numbers", numbers),
    ]


def harness_sections(record: HarnessRecord) -> list[Section]:
    """Returns the results of lm-evaluation-harness."""
    return [Section("Numbers", "numbers", harness_parts(record))]


def runtime_check_sections(record: RuntimeCheckRecord) -> list[Section]:
    """Returns which reading of a checkpoint a runtime computes."""
    verdict: list[Block] = list(verdict_sentences(record))
    return [Section("Verdict", "verdict", verdict), Section("Numbers", "numbers", runtime_check_parts(record)[:2])]
