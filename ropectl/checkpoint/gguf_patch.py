"""``patch --gguf-patch``: writes a scaling method into the rotary keys of a copy of a GGUF file."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from ropectl.checkpoint.plan import PatchPlan, plan_patch
from ropectl.checkpoint.record import describe_plan
from ropectl.checkpoint.settings import PatchSettings
from ropectl.checkpoint.staging import staged
from ropectl.errors import ConfigError, MethodError, PatchError
from ropectl.gguf.config import read_gguf_config
from ropectl.gguf.header import GgufHeader, read_header
from ropectl.gguf.scaling_keys import STANDING_STILL, GgufPlan, plan_gguf
from ropectl.gguf.writer import write_gguf
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.config.source import ModelSource, read_config
from ropectl.hf.model_settings import FOLDER
from ropectl.output_places import check_output, check_writable
from ropectl.records import NextStep, PatchRecord
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

#: Largest difference between equal frequencies (relative): GGUF files hold float32 numbers.
_TOLERANCE = 1e-6


def patch_gguf_file(settings: PatchSettings) -> PatchRecord:
    """Writes the copy, or plans it with ``dry_run``; returns the record.

    The method is the one asked for, applied to the file itself. If a model is named as well, its scaling is used: a
    patched checkpoint hands its scaling on to the GGUF file that was converted from it.

    Raises:
        ConfigError: If the request cannot work; nothing is written then.
        UnsupportedModelError: If llama.cpp cannot compute the method for the file's architecture.
        PatchError: If what was written does not read back as the method; it is removed again.
    """
    path = settings.gguf_patch
    assert path is not None
    if idle := FOLDER.changed(settings):
        raise ConfigError(
            f"{', '.join(idle)}: only for checkpoint folders, which --gguf-patch does not write.", "Leave it out."
        )
    file = read_config(str(path))
    if file.gguf_file is None:
        raise ConfigError(f"{path} is not a GGUF file.", "Give one: --gguf-patch FILE.gguf")
    is_own = "model" not in settings.model_fields_set
    name, revision = (str(path), None) if is_own else (settings.model, settings.revision)
    source = read_config(name, revision, settings.original_length, strict=settings.strict)
    plan = plan_patch(settings, source, file.rope.method)
    if not is_own:
        _check_same_model(settings, plan, file)
    lengths: dict[str, Any] = {"target_length": plan.target_length, "seq_len": plan.seq_len}
    if settings.dry_run:
        keys = plan_gguf(path, plan.method, plan.geometry, **lengths)
    else:
        out = _checked_out(settings)
        keys = patch_gguf(path, out, plan.method, plan.geometry, **lengths, overwrite=settings.overwrite)
    command = f"llama-server -m {shlex.quote(str(settings.out or 'OUT.gguf'))} -c {plan.target_length}"
    return replace(
        describe_plan(settings, plan, file),
        max_position_embeddings=keys.context_length,
        gguf_keys=dict(keys.keys),
        gguf_tensors={name: list(values) for name, values in keys.tensors.items()},
        gguf_removed=list(keys.removed),
        verified={} if settings.dry_run else {"gguf": "read back, equal to the method"},
        next_steps=[NextStep("llama.cpp", command, None)],
    )


def _checked_out(settings: PatchSettings) -> Path:
    if settings.out is None:
        raise ConfigError("patch needs a place to write to.", "Type for example: -o patched.gguf, or --dry-run")
    if settings.out.suffix != ".gguf":
        raise ConfigError(
            f"--gguf-patch writes a GGUF file, but {settings.out} does not end in .gguf.",
            f"Type for example: -o {settings.out.name}.gguf",
        )
    check_output(settings.out)
    check_writable(settings.out.parent)
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    return settings.out


def _check_same_model(settings: PatchSettings, plan: PatchPlan, file: ModelSource) -> None:
    """Refuses a file of another model, and one whose own scaling would be lost."""
    ours, theirs = plan.geometry, file.rope.geometry
    if ours.rotary_dim != theirs.rotary_dim:
        raise ConfigError(
            f"{settings.gguf_patch} rotates {theirs.rotary_dim} dimensions a head, {settings.model} {ours.rotary_dim}: "
            "they are not the same model.",
            "Give the GGUF file that was converted from it.",
        )
    existing = file.rope.method
    pairs = zip(existing.frequencies(theirs).inv_freq, plan.written_method.frequencies(ours).inv_freq, strict=True)
    same = all(math.isclose(one, other, rel_tol=_TOLERANCE) for one, other in pairs)
    if existing.name != "none" and not same and not settings.replace:
        raise MethodError(
            f"{settings.gguf_patch} is already scaled: {existing.label}. {plan.method.label} would take its place.",
            "To replace it: --replace",
        )


def patch_gguf(
    source: Path,
    out: Path,
    method: ScalingMethod,
    geometry: RopeGeometry,
    *,
    target_length: int | None = None,
    seq_len: int | None = None,
    overwrite: bool = False,
) -> GgufPlan:
    """Writes a copy of a GGUF file whose rotary keys make llama.cpp compute ``method``; weights byte for byte.

    The copy is written aside, read back, compared with the method, and only then renamed.

    Args:
        source: A GGUF file; it is only read.
        out: Where the copy goes.
        method: What llama.cpp is to compute.
        geometry: What the model was trained with.
        target_length: The context to declare; the method's target, or ``seq_len``, if None [tokens].
        seq_len: Freeze a length-dependent method at this length [tokens].
        overwrite: Replace ``out`` where it exists.

    Returns:
        The differences between the copy and the source.

    Raises:
        ConfigError: As :func:`plan_gguf`, and if ``out`` exists or cannot be written.
        UnsupportedModelError: As :func:`plan_gguf`.
        PatchError: If what was written does not read back as the method.
    """
    header = read_header(source)
    plan = plan_gguf(source, method, geometry, target_length=target_length, seq_len=seq_len, header=header)
    if out.is_dir():
        raise ConfigError(f"{out} is a folder.", "Give the name of the new file: --out FILE.gguf")
    if out.exists():
        if out.samefile(source):
            raise ConfigError(f"{out} is the file that is patched; it is never changed.", "Give another name: --out")
        if not overwrite:
            raise ConfigError(f"{out} exists.", "Give another name with --out, or replace it with --overwrite.")
    try:
        with staged(out, overwrite) as aside:
            write_gguf(source, header, aside, plan.keys, plan.tensors, plan.removed)
            _verify(aside, plan, header)
    except OSError as error:
        raise ConfigError(f"Cannot write {out}: {error.strerror or error}.", "Choose another place: --out") from None
    return plan


def _verify(path: Path, plan: GgufPlan, source: GgufHeader) -> None:
    """Reads the copy as any GGUF file and compares what it computes with the method."""
    found = describe_rope(read_gguf_config(path))
    actual = found.method.frequencies(found.geometry)
    pairs = zip(actual.inv_freq, plan.frequencies.inv_freq, strict=True)
    same = all(math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=1 / STANDING_STILL) for a, b in pairs)
    same &= math.isclose(actual.attention_factor, plan.frequencies.attention_factor, rel_tol=_TOLERANCE)
    if not same or found.max_position_embeddings != plan.context_length:
        raise PatchError(f"The written file computes {found.method.label}, not {plan.method}; nothing was kept.")
    names = {tensor.name for tensor in source.tensors} - set(plan.removed) | set(plan.tensors)
    if {tensor.name for tensor in read_header(path).tensors} != names:
        raise PatchError("The written file does not hold the tensors of the source; nothing was kept.")
