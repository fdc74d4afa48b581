"""Writes a checkpoint or an adapter under a hidden name, proves it, and renames it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ropectl.checkpoint.plan import PatchPlan
from ropectl.checkpoint.record import CARD, patch_record, write_descriptions
from ropectl.checkpoint.settings import PatchSettings
from ropectl.checkpoint.staging import staged
from ropectl.hf.model.loading import LoadOptions
from ropectl.json_reading import read_object
from ropectl.records import NextStep, PatchRecord, TrainingRecord, WrittenFiles
from ropectl.reporter import Reporter
from ropectl.runs import write_json

TOKENIZER_CONFIG = "tokenizer_config.json"


def stage_checkpoint(
    settings: PatchSettings,
    plan: PatchPlan,
    write: Callable[[Path], WrittenFiles],
    reporter: Reporter,
    *,
    origin: Path | None = None,
    training: TrainingRecord | None = None,
) -> PatchRecord:
    """Writes a checkpoint to ``settings.out`` once it is proven; returns its record.

    Args:
        settings: What was asked for.
        plan: The scaling.
        write: Writes weights and all other files into a folder; returns what the record says of them.
        reporter: Shows progress.
        origin: Where config, tokenizer's config and model card are read; the new folder itself by default.
        training: How it was trained; None if it was not.

    Raises:
        PatchError: If what was written does not compute what the method says; it is removed again.
    """
    from ropectl.checkpoint.logits import compare_logits
    from ropectl.checkpoint.proof import prove_checkpoint

    assert settings.out is not None
    with staged(settings.out, settings.overwrite) as aside:
        aside.mkdir()
        files = write(aside)
        config, tokenizer = _write_configs(settings, plan, aside, origin or aside)
        reporter.start("reading back")
        verified = prove_checkpoint(aside, plan, settings.trust_remote_code)
        if settings.verify_logits:
            reporter.start("comparing logits")
            verified["logits"] = compare_logits(aside, plan, load_options(settings))
        record = replace(patch_record(settings, plan, config, verified, tokenizer), files=files, training=training)
        write_descriptions(aside, record)
    return record


def stage_adapter(
    settings: PatchSettings,
    plan: PatchPlan,
    write: Callable[[Path], WrittenFiles],
    training: TrainingRecord | None = None,
) -> PatchRecord:
    """Writes an adapter to ``settings.out``, with its scaling in ``ropectl.json``; returns its record.

    Args:
        settings: What was asked for.
        plan: The scaling.
        write: Writes the adapter into a folder; returns what the record says of its files.
        training: How it was trained; None if it was not.
    """
    assert settings.out is not None
    base, place = shlex.quote(plan.source.location), f"ropectl itself loads {settings.out} as it is."
    is_scaled = plan.source.adapter is not None and plan.source.adapter.base_rope.method.name != "none"
    replaces = " --replace" if is_scaled else ""
    command = (
        f"ropectl patch {base}{replaces} -m '{plan.method}' -o base-scaled   # then load the adapter on base-scaled"
    )
    with staged(settings.out, settings.overwrite) as aside:
        aside.mkdir()
        files = write(aside)
        record = patch_record(settings, plan, plan.config(plan.source.writable_config), {}, {})
        step = NextStep("all", command, None, (place,))
        record = replace(record, files=files, next_steps=[step], training=training)
        write_descriptions(aside, record)
    return record


def load_options(settings: PatchSettings) -> LoadOptions:
    """Returns how the source is loaded."""
    names = ("dtype", "trust_remote_code", "allow_pickle")
    return LoadOptions(**{name: getattr(settings, name) for name in names})


def _write_configs(
    settings: PatchSettings, plan: PatchPlan, aside: Path, origin: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Writes the model's and the tokenizer's config, made from those in ``origin``, and returns them; copies the model card."""
    is_fresh = origin == aside  # written a moment ago by transformers
    before = json.loads((origin / "config.json").read_text()) if is_fresh else plan.source.writable_config
    config = plan.config(before, settings.drop_code)
    write_json(aside / "config.json", config, allow_nan=True)  # Mamba's time_step_limit ends at Infinity
    tokenizer = tokenizer_config(plan, origin)
    if tokenizer:
        write_json(aside / TOKENIZER_CONFIG, tokenizer, allow_nan=True)
    card = origin / CARD
    if card.is_file() and not is_fresh:
        (aside / CARD).write_bytes(card.read_bytes())
    return config, tokenizer


def tokenizer_config(plan: PatchPlan, origin: Path) -> dict[str, Any]:
    """Returns the new content of the tokenizer's config in a folder; empty where it has none.

    Raises:
        ConfigError: If the file is damaged.
    """
    path = origin / TOKENIZER_CONFIG
    return plan.tokenizer_config(read_object(path)) if path.is_file() else {}
