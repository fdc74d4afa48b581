"""A scaling method written into a copy of a GGUF file, in the keys that llama.cpp honours.

Which form carries which method exactly:

- a changed base: ``rope.freq_base``, in every architecture;
- linear: type and factor; YaRN with its default ramp: type, factor, trained length, and where the attention
  factor is not 0.1 ln s + 1 the multiplier ``rope.scaling.attn_factor``, the only such key that is read;
- everything else that is static: divisors as a tensor and ``rope.scaling.attn_factor``, where the graph of
  the architecture reads them.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError, PatchError, UnsupportedModelError
from ropectl.hf.geometry import describe_rope
from ropectl.hf.gguf_architectures import DIVISOR_TENSORS, DIVISOR_TENSORS_READ, NOT_PATCHED, YARN_BETAS_READ
from ropectl.hf.gguf_config import read_gguf_config
from ropectl.hf.gguf_header import GgufHeader, read_header
from ropectl.hf.gguf_writer import GgufValue, write_gguf
from ropectl.rope.frequencies import RopeFrequencies, divisors, yarn_attention_factor
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import RopeConfigPatch, ScalingMethod

#: Stands for a pair that does not turn: cos is 1 exactly, and float32 holds the number.
STANDING_STILL = 1e30

#: The written file against the method (relative): its numbers are float32.
_TOLERANCE = 1e-6

_YARN_RAMP = ("beta_fast", "beta_slow", "truncate")


@dataclass(frozen=True)
class GgufPlan:
    """What will differ between a GGUF file and its patched copy.

    Attributes:
        architecture: Of the model, as llama.cpp names it.
        method: Spec of the method.
        context_length: What the file will declare [tokens].
        keys: Keys that are written, with their values.
        tensors: Float32 vectors that are written: divisors, one per rotary pair.
        removed: Keys and tensors of an earlier scaling that are left out.
        frequencies: What llama.cpp computes from the copy.
    """

    architecture: str
    method: str
    context_length: int
    keys: dict[str, GgufValue]
    tensors: dict[str, tuple[float, ...]]
    removed: tuple[str, ...]
    frequencies: RopeFrequencies


@dataclass(frozen=True)
class GgufPatchReport:
    """What was written.

    Attributes:
        output: The new file.
        num_bytes: Its size.
        plan: What differs from the source.
    """

    output: Path
    num_bytes: int
    plan: GgufPlan

    def as_dict(self) -> dict[str, Any]:
        """Returns the report for JSON."""
        return {"output": str(self.output), "num_bytes": self.num_bytes, **asdict(self.plan)}


def plan_gguf(
    source: Path,
    method: ScalingMethod,
    geometry: RopeGeometry,
    *,
    target_length: int | None = None,
    seq_len: int | None = None,
) -> GgufPlan:
    """Returns what :func:`patch_gguf` would write. Scaling that the file already has is replaced, never stacked.

    Args:
        source: A GGUF file.
        method: What llama.cpp is to compute.
        geometry: What the model was trained with.
        target_length: The context to declare; the method's target, or ``seq_len``, if None [tokens].
        seq_len: Freeze a length-dependent method at this length [tokens].

    Raises:
        ConfigError: If the file is damaged or a part of several, or the method needs a length.
        UnsupportedModelError: If llama.cpp cannot compute the method for this architecture.
    """
    return _plan(source, read_header(source), method, geometry, target_length, seq_len)


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
    plan = _plan(source, header, method, geometry, target_length, seq_len)
    if out.is_dir():
        raise ConfigError(f"{out} is a folder.", "Give the name of the new file: --out FILE.gguf")
    if out.exists():
        if out.samefile(source):
            raise ConfigError(f"{out} is the file that is patched; it is never changed.", "Give another name: --out")
        if not overwrite:
            raise ConfigError(f"{out} exists.", "Give another name with --out, or replace it with --overwrite.")
    aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        write_gguf(source, header, aside, plan.keys, plan.tensors, plan.removed)
        _verify(aside, plan, header)
        num_bytes = aside.stat().st_size
        aside.replace(out)
    except OSError as error:
        raise ConfigError(f"Cannot write {out}: {error.strerror or error}.", "Choose another place: --out") from None
    finally:  # Ctrl-C too must leave nothing half written behind
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return GgufPatchReport(out, num_bytes, plan)


def _plan(
    source: Path,
    header: GgufHeader,
    method: ScalingMethod,
    geometry: RopeGeometry,
    target_length: int | None,
    seq_len: int | None,
) -> GgufPlan:
    _check_patchable(source, header)
    if method.depends_on_seq_len and seq_len is None:
        raise ConfigError(
            f"{method.label} follows the length of the sequence; llama.cpp computes one set of frequencies for all lengths.",
            "Freeze it at the length you will use: --freeze-at N",
        )
    patch = method.config_patch(geometry, seq_len)
    frequencies = method.frequencies(geometry, seq_len)
    target = target_length or (seq_len if method.depends_on_seq_len else None) or method.target_length(geometry)
    target = max(target, geometry.original_max_position_embeddings)
    keys: dict[str, GgufValue] = {
        "context_length": target,
        "rope.freq_base": float(patch.rope_parameters["rope_theta"]),
        "rope.scaling.original_context_length": geometry.original_max_position_embeddings,
    }
    native = _native_keys(header.architecture, patch, frequencies)
    tensors: dict[str, tuple[float, ...]] = {}
    if native is None:
        keys["rope.scaling.type"] = "none"
        if frequencies.attention_factor != 1.0:
            keys["rope.scaling.attn_factor"] = frequencies.attention_factor
        values = tuple(min(f, STANDING_STILL) for f in divisors(geometry, frequencies))
        tensors = dict.fromkeys(_divisor_tensors(header.architecture, method), values)
    prefix = f"{header.architecture}."
    written = {prefix + key: value for key, value in {**keys, **(native or {})}.items()}
    old = [key for key in header.keys if key.startswith(prefix + "rope.scal") and key not in written]
    old += [t.name for t in header.tensors if t.name in DIVISOR_TENSORS and t.name not in tensors]
    return GgufPlan(header.architecture, str(method), target, written, tensors, tuple(old), frequencies)


def _check_patchable(source: Path, header: GgufHeader) -> None:
    parts = header.keys.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        raise ConfigError(
            f"{source} is one of {parts} parts of a model.", "Merge them first: llama-gguf-split --merge FIRST-PART OUT"
        )
    reason = NOT_PATCHED.get(header.architecture)
    if reason:
        raise UnsupportedModelError(f"GGUF files of architecture {header.architecture!r} are not patched: {reason}.")


def _native_keys(
    architecture: str, patch: RopeConfigPatch, frequencies: RopeFrequencies
) -> dict[str, GgufValue] | None:
    """The scaling keys of a type that llama.cpp computes itself, or None where it has none."""
    block = patch.rope_parameters
    if block["rope_type"] == "default":
        return {}
    if block["rope_type"] == "linear":
        return {"rope.scaling.type": "linear", "rope.scaling.factor": float(block["factor"])}
    ramp = {key: block[key] for key in _YARN_RAMP if key in block}
    reads_ramp = architecture in YARN_BETAS_READ and "truncate" not in ramp
    if block["rope_type"] != "yarn" or (ramp and not reads_ramp):
        return None
    keys: dict[str, GgufValue] = {"rope.scaling.type": "yarn", "rope.scaling.factor": float(block["factor"])}
    keys |= {f"rope.scaling.yarn_{name}": float(value) for name, value in ramp.items()}
    multiplier = frequencies.attention_factor / yarn_attention_factor(block["factor"])
    if not math.isclose(multiplier, 1.0, rel_tol=1e-9):
        keys["rope.scaling.attn_factor"] = multiplier
    return keys


def _divisor_tensors(architecture: str, method: ScalingMethod) -> tuple[str, ...]:
    names = DIVISOR_TENSORS_READ.get(architecture)
    if names is None:
        raise UnsupportedModelError(
            f"llama.cpp cannot compute {method.label} for models of architecture {architecture!r}: their graph takes no "
            "divisors, and a file that brings them does not load or is run without them.",
            "Possible there: none, a changed base (ntk, abf), pi, and yarn with its default ramp.",
        )
    return names


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
