"""The configs with which other programs are run: what ``patch`` writes, and blocks as models were released with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ropectl.errors import RopectlError
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.families import LATENT_ATTENTION_KEY, family_of
from ropectl.hf.config.geometry import RopeDescription, describe_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import config_facts, patch_facts
from ropectl.runtimes.runtime import CheckpointFacts

#: Extension of every form, and what it makes of the trained length.
FACTOR = 4.0

#: Method specs as they are typed; ``{short}`` and ``{long}`` are lists of divisors.
METHODS = (
    *("none", "pi", "ntk", "ntk-by-parts", "yarn", "yarn:attention_factor=1", "yarn:attention_factor=1.3"),
    *("yarn:beta_fast=16,beta_slow=2", "yarn:truncate=false", "llama3", "abf:rope_theta=500000", "dynamic-ntk"),
    *("longrope:short_factor={short},long_factor={long}", "longrope:long_factor={long},attention_factor=1.0"),
)
#: Methods that are frozen at FACTOR times the trained length.
FROZEN = ("dynamic-yarn",)

_YARN = {"rope_type": "yarn", "factor": FACTOR, "beta_fast": 32.0, "beta_slow": 1.0}
_LLAMA3 = {"rope_type": "llama3", "factor": FACTOR}
#: Blocks as in released files, by name; the length of all is declared as FACTOR times the trained one.
RELEASED: dict[str, dict[str, Any]] = {
    "mscale pair, equal": {**_YARN, "mscale": 1.0, "mscale_all_dim": 1.0},  # DeepSeek V3, Kimi K2
    "mscale pair, unequal": {**_YARN, "mscale": 0.707, "mscale_all_dim": 0.5},  # DeepSeek V2 has such keys
    "not truncated": {**_YARN, "truncate": False},  # gpt-oss
    "equal betas": {**_YARN, "beta_fast": 1.0, "beta_slow": 1.0},  # Kimi K2
    "equal bounds": {**_LLAMA3, "low_freq_factor": 1.0, "high_freq_factor": 1.0},  # Llama 4 Scout
    "dynamic with a factor": {"rope_type": "dynamic", "factor": FACTOR},  # InternLM3
    "alpha": {"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0},  # Hunyuan
    "llama 4 scaling": {**_YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1},  # Ministral 3
}
#: Families that a released block is for; the others are for all.
ONLY: dict[str, tuple[str, ...]] = {
    "not truncated": ("gpt_oss",),
    "alpha": ("hunyuan_v1_dense", "hunyuan_v1_moe"),
    "llama 4 scaling": ("ministral3",),
}


def names() -> Iterator[str]:
    """Yields the names of all forms."""
    yield from METHODS
    for name in FROZEN:
        yield f"{name}, frozen"
    yield from RELEASED


def form_facts(config: Mapping[str, Any], name: str, location: str = "model") -> CheckpointFacts | None:
    """Returns a checkpoint in one form; None where the family has no such form.

    Args:
        config: The unscaled ``config.json``, in the dialect of transformers 5 and complete.
        name: One of :func:`names`.
        location: Where the checkpoint is.
    """
    try:
        rope = describe_rope(config)
        if name in RELEASED:
            return _released(config, rope, name, location)
        return _patched(config, rope, name, location)
    except RopectlError:
        return None


def _patched(config: Mapping[str, Any], rope: RopeDescription, name: str, location: str) -> CheckpointFacts:
    geometry, target = rope.geometry, round(FACTOR * rope.geometry.original_max_position_embeddings)
    spec, _, frozen = name.partition(", ")
    spec = spec.format(short=_listed(_short(geometry)), long=_listed(_long(geometry)))
    method = parse_method(spec, None if spec == "none" else FACTOR, geometry)
    says_length = method.name not in ("none", "abf")  # a base is run for as far as it reaches
    return patch_facts(
        config,
        geometry,
        method,
        location,
        seq_len=target if frozen else None,
        target_length=target if says_length else None,
        layer_type=rope.layer_type,
    )


def _released(config: Mapping[str, Any], rope: RopeDescription, name: str, location: str) -> CheckpointFacts | None:
    section = dict(text_section(config))
    types = family_of(section).rope_types
    if section.get("model_type") not in ONLY.get(name, (section.get("model_type"),)):
        return None
    if types and RELEASED[name]["rope_type"] not in types:
        return None  # transformers' own class refuses it
    trained = rope.geometry.original_max_position_embeddings
    share = {key: value for key, value in _block(section, rope).items() if key.startswith(("partial_", "mrope_"))}
    block = {**share, **RELEASED[name], "rope_theta": rope.geometry.rope_theta}
    if block["rope_type"] != "dynamic":
        block["original_max_position_embeddings"] = trained
    if name == "mscale pair, unequal" and LATENT_ATTENTION_KEY not in section:
        return None  # such files exist with latent attention only
    if rope.layer_type is None:
        section["rope_parameters"] = block
    else:
        section["rope_parameters"] = {**section["rope_parameters"], rope.layer_type: block}
    if block["rope_type"] != "dynamic":
        section["max_position_embeddings"] = round(FACTOR * trained)
    written = section if text_section(config) is config else {**config, "text_config": section}
    facts = config_facts(written, describe_rope(written), location)
    return replace(facts, config=written)


def _block(section: Mapping[str, Any], rope: RopeDescription) -> Mapping[str, Any]:
    block = section.get("rope_parameters") or {}
    nested = block.get(str(rope.layer_type))
    return nested if isinstance(nested, Mapping) else block


def _short(geometry: RopeGeometry) -> list[float]:
    return [1.0 + i / 64 for i in range(geometry.num_pairs)]


def _long(geometry: RopeGeometry) -> list[float]:
    return [1.0 + 3 * i / geometry.num_pairs for i in range(geometry.num_pairs)]


def _listed(values: list[float]) -> str:
    return ":".join(f"{value:g}" for value in values)
