"""The record of a patch: what was done, what each runtime makes of it, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ropectl.checkpoint.card import with_section
from ropectl.checkpoint.files import FileList
from ropectl.checkpoint.plan import PatchPlan
from ropectl.checkpoint.settings import PatchSettings
from ropectl.hf.config.sidecar import SIDECAR
from ropectl.records import SCHEMA_VERSION
from ropectl.runs import command_line, package_versions, write_json
from ropectl.runtimes import CheckpointFacts, next_steps, read_all
from ropectl.runtimes.facts import tokenizer_limit

CARD = "README.md"


def patch_record(
    settings: PatchSettings,
    plan: PatchPlan,
    config: Mapping[str, Any],
    verified: Mapping[str, Any],
    tokenizer: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the record, which is stored as ``ropectl.json``; the files are added by who handled them.

    Args:
        settings: What was asked for.
        plan: What was done.
        config: The content of ``config.json`` as written.
        verified: What the proof compared; empty where nothing was written.
        tokenizer: The content of ``tokenizer_config.json`` as written.
    """
    sidecar, source = plan.sidecar(), plan.source
    facts = _facts(settings, plan, config, tokenizer_limit(tokenizer))
    return {
        "schema_version": SCHEMA_VERSION,
        "output": str(settings.out) if settings.out is not None else None,
        **sidecar.to_json(),
        "before": {"method": str(source.rope.method), "max_position_embeddings": source.rope.max_position_embeddings},
        "source": {"name": source.name, "revision": source.revision, "commit": source.commit},
        "verified": dict(verified),
        "tokenizer_max_length": facts.tokenizer_max_length,
        "runtimes": [reading.to_json() for reading in read_all(facts)],
        "next_steps": [step.to_json() for step in next_steps(facts)],
        "notes": list(plan.notes),
        "versions": package_versions(),
        "command": command_line(),
    }


def _facts(settings: PatchSettings, plan: PatchPlan, config: Mapping[str, Any], limit: int | None) -> CheckpointFacts:
    """Returns the facts that runtimes are asked about: the config as it is written."""
    location = str(settings.out) if settings.out is not None else "OUT"
    return CheckpointFacts(
        config, plan.geometry, plan.written_method, plan.target_length, location, limit, plan.source.rope.layer_type
    )


def describe_files(files: FileList, settings: PatchSettings) -> dict[str, Any]:
    """Returns what was carried over, and how."""
    return {
        "num_files": len(files.kept),
        "num_bytes": files.num_bytes,
        "linked": settings.link,
        "left_out": list(files.left_out),
    }


def write_descriptions(aside: Path, record: Mapping[str, Any]) -> None:
    """Writes the sidecar and the section of the model card."""
    write_json(aside / SIDECAR, record)
    card = aside / CARD
    before = card.read_bytes().decode("utf-8", "surrogateescape") if card.is_file() else ""
    card.write_bytes(with_section(before, record).encode("utf-8", "surrogateescape"))
