"""The origin of the numbers: the protocol in words, the environment, and the commands that repeat them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ropectl.data.units import drawn_unit, unit_name
from ropectl.evaluate.shared_config import USES_ACCURACY
from ropectl.records import ComparisonRecord, FinetuneRecord, PasskeyRecord, PerplexityRecord, TasksRecord, to_json
from ropectl.records.reading import AnyRecord
from ropectl.report.blocks import Block, Command, Commands, Points, Section
from ropectl.report.document import NOTE, Sentence, facts
from ropectl.report.page.commands import comparison_command, measurement_command, typed_command
from ropectl.report.page.measurements import hash_text, unit_list, units_scored
from ropectl.report.page.trainings import settings_list
from ropectl.report.tables.words import NONE_MARK, setting_text
from ropectl.report.views.compare_methods import failures

#: What says where and how a measurement ran: as it was resolved, or where a record does not say that as it was set.
_PLACE = ("device", "dtype", "attention", "prefill_chunk", "batch_size", "revision")


def comparison_protocol(record: ComparisonRecord) -> Section:
    """Returns what was scored, on what, how often, and how the verdicts are made."""
    manifest = record.manifest
    bos = manifest.bos_token_id
    points = [point for row in record.rows for point in (*row.perplexity, *row.tail)]
    rows = (
        ("Text", record.text),
        *units_scored(max((point.num_documents for point in points), default=0), manifest),
        ("Begins with", "no beginning-of-sequence token" if bos is None else f"token {bos}, never scored"),
        ("Tokens, SHA-256", hash_text(manifest.tokens_sha256)),
    )
    blocks: list[Block] = [Points(_rules(record)), facts("", rows), *unit_list(manifest)]
    if manifest.finetune:
        settings = manifest.finetune.get("settings")
        blocks.append(settings_list("Settings of the trainings", settings if isinstance(settings, dict) else {}))
    return Section("Protocol", "protocol", blocks)


def _rules(record: ComparisonRecord) -> list[str]:
    """Returns in sentences how each number is measured and judged."""
    config, targets = record.manifest.config, record.manifest.tail_targets_per_document
    lengths = ", ".join(f"{length:,}" for length in record.lengths)
    split = record.manifest.split
    unit, beginning, rules = unit_name(split), "each document in one window", []
    if split is not None:
        beginning = "each window"
        rules.append(
            f"Documents are cut into disjoint windows of {split:,} tokens, which count as documents of their own; those that "
            f"are scored are taken from all documents in turn and spread evenly over each. Intervals are over "
            f"{drawn_unit(split, record.manifest.clusters)}s."
        )
    rules += [
        f"Perplexity: the first N tokens of {beginning}, all of them scored, N = {lengths}. The same "
        f"{unit}s at every length; exp of the summed loss over the number of scored tokens.",
        f"models: the same last {targets or 'K'} tokens of each {unit}, given the N tokens that end with them. A length is a yes if "
        f"the whole paired 95 % interval of the mean difference to the unscaled model at its trained length is at most "
        f"{config.get('tolerance', 'the tolerance')} nats, a no if all of it is above, else not resolved.",
    ]
    if any(row.passkey for row in record.rows):
        trials, depths = config.get("trials", NONE_MARK), config.get("depths", NONE_MARK)
        distractors = config.get("distractors")
        others = f", {distractors} other labelled keys" if distractors else ""
        wanted = config.get("min_accuracy")
        wanted = wanted if isinstance(wanted, int | float) else USES_ACCURACY
        rules.append(
            f"Passkeys: a five-digit number in filler text, asked for at the end; {trials} prompts at each of {depths} depths "
            f"and each length, {_seeds(config)}{others}. Answers are scored token by token, which finds "
            "what greedy decoding would write. Wilson 95 % intervals. "
            f"uses: the whole interval at {wanted:.0%} or above at every measured length from the trained one up to it."
        )
    rules += [
        "computes: the longest context in which no pair that never made a full turn in training turns further than it did "
        "then.",
        "A method that depends on the length is evaluated with the frequencies of each length, so that no result depends on "
        "what ran before.",
    ]
    if record.manifest.finetune:
        rules.append(
            "Tuned rows: every method was trained from the same weights, on the same tokens, in the same number of steps, and "
            "measured again."
        )
    return rules


def environment_section(record: AnyRecord) -> Section:
    """Returns versions, device and settings, and the command as it was typed."""
    manifest = getattr(record, "manifest", None)
    about = manifest or record
    config = getattr(manifest, "config", {})  # a harness record holds no settings of ours
    rows = [(name, value) for name, value in getattr(about, "versions", {}).items()]
    for name in _PLACE:
        value = getattr(about, name, None) or config.get(name)
        if value is not None:
            rows.append((name.replace("_", " "), str(value)))
    if isinstance(record, FinetuneRecord):
        rows += [(name, setting_text(value)) for name, value in to_json(record.training.engine).items()]
    blocks: list[Block] = [facts("", rows) if rows else Sentence("The record does not say.", NOTE)]
    typed = typed_command(manifest.command) if manifest else None
    if typed:
        blocks.append(Commands([Command("As it was typed", typed)]))
    if config:
        blocks.append(settings_list("All settings", config))
    return Section("Environment", "environment", blocks)


def commands_section(record: ComparisonRecord, folder: Path | None) -> Section:
    """Returns the command that repeats the comparison.

    Args:
        record: The comparison.
        folder: Its run folder; None if not known.
    """
    whole = comparison_command(record, folder)
    if whole is None:
        text = "This version of ropectl does not know the settings in this record; it cannot say how to repeat it."
        return Section("Commands", "commands", [Sentence(text, NOTE)])
    text = (
        "The section of each method has the commands for its own numbers. Each gives exactly the number in the table, whatever else is measured and in whatever order. "
        "Equal digits need the same versions on the same kind of device."
    )
    return Section("Commands", "commands", [Commands([whole]), Sentence(text, NOTE)])


def measurement_commands(record: PerplexityRecord | PasskeyRecord | TasksRecord) -> Section:
    """Returns the command that measures a single record again."""
    command, typed = measurement_command(record), typed_command(record.manifest.command)
    if command is None and typed is None:
        return Section("Commands", "commands", [Sentence("The record does not say how it was made.", NOTE)])
    return Section("Commands", "commands", [Commands([command or Command("As it was typed", typed or "")])])


def errors_section(record: ComparisonRecord, folder: Path | None) -> Section | None:
    """Returns what failed, with the message of each failure; None if nothing did.

    Args:
        record: The comparison.
        folder: Its run folder; None if not known.
    """
    failed = failures(record)
    if not failed:
        return None
    blocks: list[Block] = [Points([sentence.text for sentence in failed])]
    whole = comparison_command(record, folder)
    if whole is not None:
        retry = Command("To measure them again", f"{whole.line} --retry-failed", whole.is_risky)
        blocks.append(Commands([retry]))
    return Section("Errors", "errors", blocks)


def _seeds(config: Mapping[str, Any]) -> str:
    """Returns the seeds of the prompts."""
    first, count = config.get("seed", NONE_MARK), config.get("seeds", 1)
    return f"seeds {first} to {first + count - 1}" if isinstance(first, int) and count > 1 else f"seed {first}"
