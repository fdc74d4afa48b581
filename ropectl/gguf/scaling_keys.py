"""Finds the keys of a GGUF file that make llama.cpp compute a scaling method.

The exact form of each method:

- a changed base: ``rope.freq_base``, in every architecture;
- linear: type and factor; YaRN with its default ramp: type, factor, trained length, and where the attention
  factor is not 0.1 ln s + 1 the multiplier ``rope.scaling.attn_factor``, the only such key that is read;
- everything else that is static: divisors as a tensor and ``rope.scaling.attn_factor``, where the graph of
  the architecture reads them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.gguf.architectures import DIVISOR_TENSORS, DIVISOR_TENSORS_READ, NOT_PATCHED, YARN_BETAS_READ
from ropectl.gguf.header import GgufHeader, read_header
from ropectl.gguf.writer import GgufValue
from ropectl.rope.config_patch import RopeConfigPatch, universal_config
from ropectl.rope.frequencies import RopeFrequencies, whole_table_divisors, yarn_attention_factor
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

#: The divisor of a pair that does not turn: cos is 1 exactly, and float32 holds the number.
STANDING_STILL = 1e30

#: The largest values that llama.cpp holds: a signed 32-bit context length, and float32 numbers.
LARGEST_COUNT, LARGEST_NUMBER = 2**31 - 1, 3.4e38

_YARN_RAMP = ("beta_fast", "beta_slow", "truncate")


@dataclass(frozen=True)
class GgufPlan:
    """The differences between a GGUF file and its patched copy.

    Attributes:
        architecture: Architecture of the model, as llama.cpp names it.
        method: Spec of the method.
        context_length: The context that the file will declare [tokens].
        keys: Keys that are written, with their values.
        tensors: Float32 vectors that are written: divisors, one per rotary pair.
        removed: Keys and tensors of an earlier scaling that are left out.
        frequencies: The frequencies that llama.cpp computes from the copy.
    """

    architecture: str
    method: str
    context_length: int
    keys: dict[str, GgufValue]
    tensors: dict[str, tuple[float, ...]]
    removed: tuple[str, ...]
    frequencies: RopeFrequencies


def plan_gguf(
    source: Path,
    method: ScalingMethod,
    geometry: RopeGeometry,
    *,
    target_length: int | None = None,
    seq_len: int | None = None,
    header: GgufHeader | None = None,
) -> GgufPlan:
    """Returns what will differ in a copy of a GGUF file. Scaling that the file already has is replaced, never stacked.

    Args:
        source: A GGUF file.
        method: What llama.cpp is to compute.
        geometry: What the model was trained with.
        target_length: The context to declare; the method's target, or ``seq_len``, if None [tokens].
        seq_len: Freeze a length-dependent method at this length [tokens].
        header: The file's header, where it has been read already.

    Raises:
        ConfigError: If the file is damaged or a part of several, or the method needs a length.
        UnsupportedModelError: If llama.cpp cannot compute the method for this architecture.
    """
    header = header or read_header(source)
    _check_patchable(source, header)
    if method.depends_on_seq_len and seq_len is None:
        raise ConfigError(
            f"{method.label} follows the length of the sequence; llama.cpp computes one set of frequencies for all lengths.",
            "Freeze it at the length you will use: --freeze-at N",
        )
    frequencies = method.frequencies(geometry, seq_len)
    patch = method.config_patch(geometry, seq_len)
    if geometry.num_turning is not None:  # only divisors say which pairs turn, so they say everything
        patch = universal_config(geometry, frequencies, patch.max_position_embeddings)
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
        values = tuple(min(f, STANDING_STILL) for f in whole_table_divisors(geometry, frequencies))
        tensors = dict.fromkeys(_divisor_tensors(header.architecture, method), values)
    prefix = f"{header.architecture}."
    written = {prefix + key: value for key, value in {**keys, **(native or {})}.items()}
    for key, value in written.items():
        if not isinstance(value, str) and value > (LARGEST_COUNT if isinstance(value, int) else LARGEST_NUMBER):
            raise ConfigError(f"{method.label} needs {key} = {value:g}: more than a GGUF file and llama.cpp can hold.")
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
    """Returns the scaling keys of a type that llama.cpp computes itself, or None where it has none."""
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
            "divisors, and a file with them does not load or is run without them.",
            "Possible there: none, a changed base (ntk, abf), pi, and yarn with its default ramp.",
        )
    return names
