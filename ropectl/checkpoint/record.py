"""The record of a patch, in ``ropectl.json`` and, for people, in a section of the model card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ropectl.checkpoint.plan import PatchPlan
from ropectl.checkpoint.settings import PatchSettings
from ropectl.hf.config.sidecar import SIDECAR
from ropectl.hf.config.source import ModelSource
from ropectl.records import PatchRecord, ScalingBefore, SourceRecord, TrainingRecord, to_json
from ropectl.rope.derived import derived_values
from ropectl.rope.geometry import describe_rotary_dim
from ropectl.runs import command_line, package_versions, write_json
from ropectl.runtimes.facts import tokenizer_limit
from ropectl.runtimes.matrix import next_steps, read_all
from ropectl.runtimes.runtime import CheckpointFacts

CARD = "README.md"

#: What marks the section in the model card.
_BEGIN, _END = "<!-- ropectl:begin -->", "<!-- ropectl:end -->"

#: Longest method spec that the model card shows whole [characters].
_LONGEST_SPEC = 200


def describe_plan(settings: PatchSettings, plan: PatchPlan, source: ModelSource) -> PatchRecord:
    """Returns the record of a plan; the caller adds what only one kind of result has.

    Args:
        settings: What was asked for.
        plan: The scaling.
        source: The checkpoint or file that is patched.
    """
    return PatchRecord(
        output=str(settings.out) if settings.out is not None else None,
        **vars(plan.sidecar()),
        before=ScalingBefore(str(source.rope.method), source.rope.max_position_embeddings),
        source=SourceRecord(source.name, source.revision, source.commit),
        derived=derived_values(plan.method, plan.geometry, plan.seq_len, plan.target_length),
        notes=list(plan.notes),
        versions=package_versions(),
        command=command_line(),
    )


def patch_record(
    settings: PatchSettings,
    plan: PatchPlan,
    config: Mapping[str, Any],
    verified: Mapping[str, Any],
    tokenizer: Mapping[str, Any],
) -> PatchRecord:
    """Returns the record of a checkpoint, which is stored as ``ropectl.json``; the caller adds the files.

    Args:
        settings: What was asked for.
        plan: The scaling.
        config: The content of ``config.json`` as written.
        verified: What the proof compared; empty where nothing was written.
        tokenizer: The content of ``tokenizer_config.json`` as written.
    """
    location = str(settings.out) if settings.out is not None else "OUT"
    limit, layer_type = tokenizer_limit(tokenizer), plan.source.rope.layer_type
    facts = CheckpointFacts(config, plan.geometry, plan.written_method, plan.target_length, location, limit, layer_type)
    return replace(
        describe_plan(settings, plan, plan.source),
        verified=dict(verified),
        tokenizer_max_length=limit,
        runtimes=read_all(facts),
        next_steps=next_steps(facts),
    )


def write_descriptions(folder: Path, record: PatchRecord) -> None:
    """Writes the sidecar and the section of the model card."""
    write_json(folder / SIDECAR, to_json(record))
    card = folder / CARD
    before = card.read_bytes().decode("utf-8", "surrogateescape") if card.is_file() else ""
    card.write_bytes(_with_section(before, record).encode("utf-8", "surrogateescape"))


def _with_section(card: str, record: PatchRecord) -> str:
    """Returns a model card with the section of this patch, in place of an earlier patch's."""
    end_of_line = "\r\n" if "\r\n" in card else "\n"
    section = _section(record).replace("\n", end_of_line)
    between = re.compile(f"{_BEGIN}(?:(?!{_BEGIN}).)*?{_END}", re.DOTALL)  # a lone marker ends nothing
    if between.search(card):
        return between.sub(lambda _: section, card, count=1)
    gap = 2 * end_of_line
    return f"{card.rstrip()}{gap}{section}{end_of_line}".lstrip() if card else f"{section}\n"


def _section(record: PatchRecord) -> str:
    geometry, method, files = record.geometry, record.method, record.files
    frozen = f", frozen at {record.seq_len} tokens" if record.seq_len else ""
    weights = "weights were loaded and saved again" if files and files.rewritten else "weights are unchanged"
    if record.training:
        weights = "weights were fine-tuned"
    lines = [
        _BEGIN,
        "## Context extension",
        "",
        f"The rotary position embedding of `{record.source.name}` was scaled with ropectl; {weights}.",
        "",
        f"- method: `{method if len(method) <= _LONGEST_SPEC else method[:_LONGEST_SPEC] + '...'}`{frozen}",
        f"- trained: {geometry.original_max_position_embeddings} tokens, rope_theta {geometry.rope_theta:g}, "
        f"{describe_rotary_dim(geometry.to_json())}",
        f"- meant for: {record.target_length} tokens",
        *_training_lines(record.training),
        "",
        "How to run it:",
        "",
    ]
    for step in record.next_steps:
        if step.command:
            lines += [f"{step.runtime}:", "", "```", step.command, "```", ""]
        else:
            lines += [f"{step.runtime}: not possible. {step.refusal}", ""]
    lines += ["Positions can be computed up to there; how well the model works there has to be measured.", _END]
    return "\n".join(lines)


def _training_lines(training: TrainingRecord | None) -> list[str]:
    if training is None:
        return []
    settings = training.settings
    chosen = f", the weights of step {training.step}" if training.step != training.steps else ""
    return [
        f"- fine-tuning: {settings['strategy']}, {training.steps} steps of {settings['batch_size']} sequences of "
        f"{training.seq_len} tokens (`{settings['text']}`), positions {settings['positions']}, peak learning rate "
        f"{training.learning_rate:g}{chosen}"
    ]
