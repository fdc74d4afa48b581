"""How the numbers came about: the protocol in words, the environment, and what makes each again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ropectl.report.page.blocks import Block, Commands, Facts, Hidden, Link, Points, Section, Words
from ropectl.report.page.commands import Command, comparison_command, measurement_command, row_commands, typed_command
from ropectl.report.page.comparison import accuracy_wanted
from ropectl.report.page.numbers import NOTHING
from ropectl.report.tables import row_names

#: Settings of a measurement that say where and how it ran.
_PLACE = ("device", "dtype", "attention", "prefill_chunk", "batch_size", "revision")


def comparison_protocol(record: Mapping[str, Any]) -> Section:
    """Returns what was scored, on what, how often, and how the verdicts are made."""
    manifest, rows = record["manifest"], record["rows"]
    config = _mapping(manifest.get("config"))
    lengths = ", ".join(f"{length:,}" for length in record["lengths"])
    documents = manifest.get("documents") or []
    targets = manifest.get("tail_targets_per_document")
    sentences = [
        f"Perplexity: the first N tokens of each document in one window, all of them scored, N = {lengths}. The same "
        "documents at every length; exp of the summed loss over the number of scored tokens.",
        f"models: the same last {targets or 'K'} tokens of each document, given the N tokens that end with them. A length counts "
        f"if the upper end of the paired bootstrap 95 % interval of the mean difference to the unscaled model at its trained "
        f"length is at most {config.get('tolerance', 'the tolerance')} nats.",
    ]
    if any(row["passkey"] for row in rows):
        trials, depths = config.get("trials", NOTHING), config.get("depths", NOTHING)
        distractors = config.get("distractors") or 0
        sentences.append(
            f"Passkeys: a five-digit number in filler text, asked for at the end; {trials} prompts at each of {depths} depths "
            f"and each length, seed {config.get('seed', NOTHING)}"
            + (f", {distractors} other labelled keys" if distractors else "")
            + ". Answers are scored token by token, which finds what greedy decoding would write. Wilson 95 % intervals. "
            f"uses: at least {accuracy_wanted(record)} at every length from the trained one up to it."
        )
    sentences.append(
        "computes: the longest context in which no pair that never made a full turn in training turns further than it did then."
    )
    sentences.append(
        "A method that depends on the length is evaluated with the frequencies of each length, so that no result depends on what ran before."
    )
    if manifest.get("finetune"):
        sentences.append(
            "Tuned rows: every method was trained from the same weights, on the same tokens, in the same number of steps, and measured again."
        )
    facts: list[tuple[str, str | Link]] = [
        ("Text", str(record["text"])),
        ("Documents scored", str(_documents_scored(rows))),
        ("Begins with", _bos(manifest.get("bos_token_id"))),
        ("Tokens, SHA-256", str(manifest.get("tokens_sha256", NOTHING))[:16] + "\u2026"),
    ]
    blocks: list[Block] = [Points(sentences), Facts(facts)]
    if documents:
        blocks.append(Hidden(f"The {len(documents)} documents", [Points([str(name) for name in documents])]))
    finetune = _mapping(manifest.get("finetune"))
    if finetune:
        blocks.append(Hidden("Settings of the trainings", [Facts(_facts(_mapping(finetune.get("settings"))))]))
    return Section("Protocol", "protocol", blocks)


def _documents_scored(rows: Sequence[Mapping[str, Any]]) -> int:
    return max((point["num_documents"] for row in rows for point in (*row["perplexity"], *row["tail"])), default=0)


def _bos(token: Any) -> str:
    return "no beginning-of-sequence token" if token is None else f"token {token}, never scored"


def environment_section(record: Mapping[str, Any], command: Any = None) -> Section:
    """Returns versions, device and settings, and the command as it was typed."""
    manifest = _mapping(record.get("manifest"))
    versions = _mapping(manifest.get("versions") or record.get("versions"))
    config = _mapping(manifest.get("config"))
    facts = [(str(name), str(value)) for name, value in versions.items()]
    for name in _PLACE:
        value = manifest.get(name, config.get(name))
        if value is not None:
            facts.append((name.replace("_", " "), str(value)))
    blocks: list[Block] = [Facts(facts)] if facts else [Words("The record does not say.", "note")]
    typed = typed_command(command if command is not None else manifest.get("command"))
    if typed:
        blocks.append(Commands([Command("As it was typed", typed)]))
    if config:
        blocks.append(Hidden("All settings", [Facts(_facts(config))]))
    return Section("Environment", "environment", blocks)


def _facts(settings: Mapping[str, Any]) -> list[tuple[str, str | Link]]:
    return [(str(name), _plain(value)) for name, value in settings.items()]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    return NOTHING if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def commands_section(record: Mapping[str, Any], folder: Path | None) -> Section:
    """Returns what makes the comparison again, and each of its numbers alone."""
    whole = comparison_command(record, folder)
    if whole is None:
        text = (
            "The settings in this record are none that this version of ropectl knows; it cannot say how to repeat them."
        )
        return Section("Commands", "commands", [Words(text, "note")])
    blocks: list[Block] = [Commands([whole])]
    for row, name in zip(record["rows"], row_names(record["rows"]), strict=True):
        commands = row_commands(record, row)
        if commands:
            blocks.append(Hidden(f"{name}, each number alone", [Commands(commands)]))
    blocks.append(
        Words(
            "Each gives the very number of the table: neither the order of methods nor what else is measured changes one. "
            "The same versions on the same kind of device are needed for equal digits.",
            "note",
        )
    )
    return Section("Commands", "commands", blocks)


def measurement_commands(kind: str, record: Mapping[str, Any]) -> Section:
    """Returns what measures a single record again."""
    command = measurement_command(kind, record)
    typed = typed_command(record["manifest"].get("command"))
    if command is None and typed is None:
        return Section("Commands", "commands", [Words("The record does not say how it was made.", "note")])
    return Section("Commands", "commands", [Commands([command or Command("As it was typed", typed or "")])])


def errors_section(record: Mapping[str, Any], folder: Path | None) -> Section | None:
    """Returns what failed, in the words of the failure; None if nothing did."""
    rows = record["rows"]
    failed = [
        f"{name}: {message}" for name, row in zip(row_names(rows), rows, strict=True) for message in row["errors"]
    ]
    if not failed:
        return None
    blocks: list[Block] = [Points(failed)]
    whole = comparison_command(record, folder)
    if whole is not None:
        retry = Command("To measure them again", f"{whole.line} --retry-failed", whole.is_risky)
        blocks.append(Commands([retry]))
    return Section("Errors", "errors", blocks)
