"""A scaling method written into a copy of a GGUF file: aside, read back, compared, and only then renamed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ropectl.checkpoint.staging import staged
from ropectl.errors import ConfigError, PatchError
from ropectl.gguf.config import read_gguf_config
from ropectl.gguf.header import GgufHeader, read_header
from ropectl.gguf.scaling_keys import STANDING_STILL, GgufPlan, plan_gguf
from ropectl.gguf.writer import write_gguf
from ropectl.hf.config.geometry import describe_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

#: The written file against the method (relative): its numbers are float32.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class GgufPatchReport:
    """The copy that was written.

    Attributes:
        output: The new file.
        num_bytes: Its size.
        plan: What differs from the source.
    """

    output: Path
    num_bytes: int
    plan: GgufPlan


def patch_gguf(
    source: Path,
    out: Path,
    method: ScalingMethod,
    geometry: RopeGeometry,
    *,
    target_length: int | None = None,
    seq_len: int | None = None,
    overwrite: bool = False,
) -> GgufPatchReport:
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
    return GgufPatchReport(out, out.stat().st_size, plan)


def _verify(path: Path, plan: GgufPlan, source: GgufHeader) -> None:
    """Reads the copy as any GGUF file and compares what it computes with the method."""
    found = describe_rope(read_gguf_config(path))
    actual = found.method.frequencies(found.geometry)
    pairs = zip(actual.inv_freq, plan.frequencies.inv_freq, strict=True)
    same = all(math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=1 / STANDING_STILL) for a, b in pairs)
    same &= math.isclose(actual.attention_factor, plan.frequencies.attention_factor, rel_tol=_TOLERANCE)
    if not same or found.max_position_embeddings != plan.context_length:
        raise PatchError(f"What was written computes {found.method.label}, not {plan.method}; nothing was kept.")
    names = {tensor.name for tensor in source.tensors} - set(plan.removed) | set(plan.tensors)
    if {tensor.name for tensor in read_header(path).tensors} != names:
        raise PatchError("What was written does not hold the tensors of the source; nothing was kept.")
