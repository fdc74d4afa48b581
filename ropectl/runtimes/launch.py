"""How to start a server: with the config override that makes it compute what was meant, found by trying its own reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.families import family_of, name_of
from ropectl.hf.config.writer import patched_config
from ropectl.records import NextStep, RuntimeReading
from ropectl.rope.config_patch import RopeConfigPatch, universal_config
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, SERVING_CODES, relative_difference
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.views import ORIGINAL

#: Red lines with which a server may still be started: it serves what was meant up to the requested length.
STARTABLE = (*SERVING_CODES, "static-per-server")

Reader = Callable[[CheckpointFacts], RuntimeReading]


def can_start(facts: CheckpointFacts, reading: RuntimeReading) -> bool:
    """Returns whether a server computes what was meant at the target length, whichever length it serves by default."""
    if reading.inv_freq is None or reading.attention_factor is None:
        return False
    meant = facts.meant(facts.target_length)
    same = relative_difference(reading.inv_freq, meant.inv_freq) <= DEVIATION_TOLERANCE
    same = same and abs(reading.attention_factor - meant.attention_factor) <= DEVIATION_TOLERANCE
    return same and all(line.code in STARTABLE for line in reading.problems)


def candidate_overrides(facts: CheckpointFacts) -> Iterator[dict[str, Any]]:
    """Yields what may be written over the config: the method's own type, then the universal form."""
    patches = []
    # Where some pairs stand still, the native block is the one that is there already.
    native = facts.method.native_config(facts.geometry) if facts.geometry.num_turning is None else None
    if native is not None:
        # Length keys say the target, except where the type's formula takes them for L.
        limit = native.max_position_embeddings
        if native.rope_parameters["rope_type"] not in ("linear", "dynamic"):
            limit = max(limit, facts.target_length)
        patches.append(RopeConfigPatch(native.rope_parameters, limit, native.hints))
    if not facts.method.depends_on_seq_len and not family_of(facts.section).no_universal:
        patches.append(universal_config(facts.geometry, facts.meant(facts.target_length), facts.target_length))
    for patch in patches:
        section = text_section(patched_config(facts.config, patch, facts.layer_type))
        values = {key: section[key] for key in ("rope_parameters", name_of(section, "max_position_embeddings"))}
        if ORIGINAL in section:
            values[ORIGINAL] = section[ORIGINAL]
        elif facts.section.get(ORIGINAL) is not None and facts.layer_type is None:  # it would beat the block
            values[ORIGINAL] = section["rope_parameters"].get(ORIGINAL, facts.geometry.original_max_position_embeddings)
        yield values


def overridden(facts: CheckpointFacts, values: Mapping[str, Any], merges: bool) -> CheckpointFacts:
    """Returns the facts of the config as a server sees it after an override.

    Args:
        facts: The checkpoint.
        values: What is written over its text part.
        merges: Whether the server merges the scaling block with the one that is there, or replaces it.
    """
    section = {key: value for key, value in facts.section.items() if key != "rope_scaling"}
    current = facts.section.get("rope_scaling") or facts.section.get("rope_parameters") or {}
    section = {**section, **values}
    if merges:
        section["rope_parameters"] = {**current, **values["rope_parameters"]}
    nested = facts.section is not facts.config
    config = {**facts.config, "text_config": section} if nested else section
    return replace(facts, config=config)


def server_step(
    name: str,
    facts: CheckpointFacts,
    command: str,
    override_flag: str,
    reader: Reader,
    reaches: Callable[[CheckpointFacts], bool],
    merges: bool,
) -> NextStep:
    """Returns how to start a server on a checkpoint: as it stands, else with the first override that helps.

    Args:
        name: The runtime.
        facts: The checkpoint.
        command: The command that starts the server on the checkpoint as it stands.
        override_flag: The option that takes an override.
        reader: The server's reader.
        reaches: Returns whether the server accepts the target length.
        merges: As in :func:`overridden`.
    """
    reading = reader(facts)
    if reading.evidence.kind == "unknown":
        return NextStep(
            name, command, None, (f"what it makes of {facts.model_type} is not known: compare it on a text",)
        )
    if can_start(facts, reading) and reaches(facts):
        notes = tuple(line.text for line in reading.problems if line.code == "static-per-server")
        return NextStep(name, command, None, notes)
    for values in candidate_overrides(facts):
        after = overridden(facts, values, merges)
        if can_start(facts, reader(after)) and reaches(after):
            nested = facts.section is not facts.config
            override = json.dumps({"text_config": values} if nested else values)
            return NextStep(name, f"{command} {override_flag} '{override}'", None, ())
    reasons = "; ".join(line.text for line in reading.problems)
    if facts.method.depends_on_seq_len:
        reasons += f". Write one length into a checkpoint: --freeze-at {facts.target_length}"
    return NextStep(name, None, reasons)
