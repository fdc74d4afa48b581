"""``patch --gguf-patch``: the rotary keys of a copy of a GGUF file."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

from ropectl.checkpoint.gguf_patch import patch_gguf
from ropectl.checkpoint.plan import PatchPlan, plan_patch
from ropectl.checkpoint.settings import PatchSettings
from ropectl.errors import ConfigError, MethodError
from ropectl.gguf.scaling_keys import plan_gguf
from ropectl.hf.config.source import ModelSource, read_config
from ropectl.hf.model_settings import FOLDER
from ropectl.records import SCHEMA_VERSION
from ropectl.runs import check_writable, command_line, package_versions
from ropectl.runtimes import NextStep

#: GGUF files hold float32 numbers (relative).
FLOAT32 = 1e-6


def patch_gguf_file(settings: PatchSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Writes the copy, or plans it with ``dry_run``; returns the record and what a person should know.

    The method is the one asked for, on the file itself; or, with a model named beside it, that model's:
    a patched checkpoint hands its scaling on to the GGUF file that was converted from it.

    Raises:
        ConfigError: If the request cannot work; nothing is written then.
        UnsupportedModelError: If llama.cpp cannot compute the method for the file's architecture.
        PatchError: If what was written does not read back as the method; it is removed again.
    """
    assert settings.gguf_patch is not None
    if idle := FOLDER.changed(settings):
        raise ConfigError(
            f"{', '.join(idle)}: said for a checkpoint folder, which --gguf-patch does not write.", "Leave it out."
        )
    file = read_config(str(settings.gguf_patch))
    if file.gguf_file is None:
        raise ConfigError(f"{settings.gguf_patch} is not a GGUF file.", "Give one: --gguf-patch FILE.gguf")
    is_own = "model" not in settings.model_fields_set
    source = file if is_own else read_config(settings.model, settings.revision, settings.original_length)
    if is_own and settings.original_length is not None:
        source = read_config(str(settings.gguf_patch), original_length=settings.original_length)
    plan = plan_patch(settings, source)
    if not is_own:
        _check_same_model(settings, plan, file)
    path, target = settings.gguf_patch, plan.target_length
    if settings.dry_run:
        keys = plan_gguf(path, plan.method, plan.geometry, target_length=target, seq_len=plan.seq_len)
    else:
        keys = patch_gguf(
            path, _checked_out(settings), plan.method, plan.geometry,
            target_length=target, seq_len=plan.seq_len, overwrite=settings.overwrite,
        ).plan  # fmt: skip
    sidecar = plan.sidecar()
    record = {
        "schema_version": SCHEMA_VERSION,
        "output": str(settings.out) if settings.out is not None else None,
        **sidecar.to_json(),
        "max_position_embeddings": keys.context_length,
        "before": {
            "method": str(file.rope.method), "max_position_embeddings": file.rope.max_position_embeddings,
        },
        "source": {"name": str(settings.gguf_patch), "revision": None, "commit": None},
        "gguf_keys": dict(keys.keys),
        "gguf_tensors": {name: list(values) for name, values in keys.tensors.items()},
        "gguf_removed": list(keys.removed),
        "verified": {} if settings.dry_run else {"gguf": "read back, equal to the method"},
        "runtimes": [],
        "next_steps": [_next_step(settings, plan).to_json()],
        "notes": list(plan.notes),
        "versions": package_versions(),
        "command": command_line(),
    }  # fmt: skip
    return record, plan.notes


def _next_step(settings: PatchSettings, plan: PatchPlan) -> NextStep:
    file = shlex.quote(str(settings.out or "OUT.gguf"))
    return NextStep("llama.cpp", f"llama-server -m {file} -c {plan.target_length}", None)


def _checked_out(settings: PatchSettings) -> Path:
    if settings.out is None:
        raise ConfigError("patch needs a place to write to.", "Type for example: -o patched.gguf, or --dry-run")
    if settings.out.suffix != ".gguf":
        raise ConfigError(
            f"--gguf-patch writes one GGUF file, but {settings.out} is not named as one.",
            f"Type for example: -o {settings.out.name}.gguf",
        )
    check_writable(settings.out.parent)
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    return settings.out


def _check_same_model(settings: PatchSettings, plan: PatchPlan, file: ModelSource) -> None:
    """Refuses a file of another model, and scaling of its own that would be lost."""
    ours, theirs = plan.geometry, file.rope.geometry
    if ours.rotary_dim != theirs.rotary_dim:
        raise ConfigError(
            f"{settings.gguf_patch} rotates {theirs.rotary_dim} dimensions a head, {settings.model} {ours.rotary_dim}: "
            "they are not the same model.",
            "Give the GGUF file that was converted from it.",
        )
    existing = file.rope.method
    pairs = zip(existing.frequencies(theirs).inv_freq, plan.written_method.frequencies(ours).inv_freq, strict=True)
    same = all(math.isclose(one, other, rel_tol=FLOAT32) for one, other in pairs)
    if existing.name != "none" and not same and not settings.replace:
        raise MethodError(
            f"{settings.gguf_patch} is already scaled: {existing.label}. {plan.method.label} would take its place.",
            "To put it there: --replace",
        )
