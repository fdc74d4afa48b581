"""Reads from a config what its author meant by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ropectl.errors import ConfigError
from ropectl.file_reading import home_path
from ropectl.hf.config.dialects import scaling_block, scaling_type, text_section
from ropectl.hf.config.families import family_of
from ropectl.hf.config.family_patch import declaring, family_patch
from ropectl.hf.config.geometry import RopeDescription
from ropectl.hf.config.sidecar import frozen_method
from ropectl.hf.config.source import ModelSource
from ropectl.hf.config.writer import patched_config
from ropectl.json_reading import read_object
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.abf import AdjustedBaseFrequency
from ropectl.rope.methods.longrope import LongRope
from ropectl.rope.methods.none import NoScaling
from ropectl.runtimes.runtime import CheckpointFacts

#: transformers writes such numbers for tokenizers without a limit.
NO_LIMIT = 10**12

#: Types whose factor says by how much pairs are slowed, not how long a context is meant.
_NO_PROMISE = ("llama3", "longrope")

#: A factor times L that is less than this many times what the file declares is the same length, rounded up.
_ROUNDED_UP = 1.5


def config_facts(config: Mapping[str, Any], rope: RopeDescription, location: str) -> CheckpointFacts:
    """Returns the facts of a checkpoint as it stands.

    The target is what the config declares or what its factor promises, whichever is more. The factors of ``llama3`` and
    ``longrope`` promise none: Llama 3.2 declares half of its factor times L, Llama 4 far more; and a factor that is rounded
    up promises no more than is declared. A ``dynamic`` block that
    names an original length below ``max_position_embeddings`` is taken at its word: that length was meant, though
    no runtime reads it.

    Args:
        config: The content of ``config.json``.
        rope: What it says, by :func:`ropectl.hf.config.geometry.describe_rope`.
        location: Where the checkpoint is: a folder or a hub id.
    """
    geometry, method = rope.geometry, rope.method
    block = scaling_block(text_section(config), rope.layer_type)
    promised = 0 if scaling_type(block) in _NO_PROMISE else method.target_length(geometry)
    declared = rope.max_position_embeddings
    target = declared if promised < _ROUNDED_UP * declared else max(declared, promised)
    family = family_of(text_section(config))
    if family.static_longrope and scaling_type(block) == "longrope" and isinstance(method, LongRope):
        # What the class of transformers 5 turns by is the short list; what the file means has both.
        method = method.model_copy(update={key: tuple(block[key]) for key in ("short_factor", "long_factor")})
    if scaling_type(block) == "dynamic":
        original = block.get("original_max_position_embeddings")
        if original is not None and not rope.overridden and original < geometry.original_max_position_embeddings:
            geometry = replace(geometry, original_max_position_embeddings=int(original))
        target = max(target, round(float(block.get("factor") or 1.0) * geometry.original_max_position_embeddings))
    return CheckpointFacts(config, geometry, method, target, location, layer_type=rope.layer_type)


def patch_facts(
    config: Mapping[str, Any],
    geometry: RopeGeometry,
    method: ScalingMethod,
    location: str,
    seq_len: int | None = None,
    target_length: int | None = None,
    layer_type: str | None = None,
) -> CheckpointFacts:
    """Returns the facts of the checkpoint that a patch of ``config`` with ``method`` would be.

    Args:
        config: The content of ``config.json`` before the patch.
        geometry: What the model was trained with.
        method: The method.
        location: Where the checkpoint is: a folder or a hub id.
        seq_len: The length at which a length-dependent method is frozen [tokens].
        target_length: The context that is meant to work; by default what the method aims at [tokens].
        layer_type: The layer type that is scaled, where each has its own block.
    """
    target = max(target_length or 0, seq_len or 0, method.target_length(geometry))
    if target_length is not None and isinstance(method, AdjustedBaseFrequency):
        target = target_length  # however far the base would reach
    if method.depends_on_seq_len and (geometry.num_turning is not None or method.native_config(geometry) is None):
        seq_len = seq_len or target  # nothing else can be written
    patch = declaring(family_patch(method, geometry, config, seq_len), method, target)
    written = patched_config(config, patch, layer_type)
    if method.depends_on_seq_len and seq_len is not None:
        method = frozen_method(patch.rope_parameters, geometry, target)
    return CheckpointFacts(written, geometry, method, target, location, layer_type=layer_type)


def source_facts(
    source: ModelSource, method: ScalingMethod | None, seq_len: int | None = None, target_length: int | None = None
) -> CheckpointFacts | None:
    """Returns the facts of a model as it stands, or as a patch would make it; None for a GGUF file as it stands.

    Args:
        source: The model.
        method: The method of the patch; None for the model as it stands.
        seq_len: The length at which a length-dependent method is frozen [tokens].
        target_length: The context that was asked for [tokens].
    """
    if method is not None:
        config = _with_length(source.writable_config, source.rope.max_position_embeddings)
        geometry, layer_type = source.rope.geometry, source.rope.layer_type
        return patch_facts(config, geometry, method, source.name, seq_len, target_length, layer_type)
    if source.gguf_file is not None:
        return None
    config = _with_length(source.file_config, source.rope.max_position_embeddings)
    facts = config_facts(config, source.rope, source.name)
    return replace(facts, tokenizer_max_length=tokenizer_limit(_tokenizer_config(source.location)))


def llama_config(geometry: RopeGeometry) -> dict[str, Any]:
    """Returns the rotary part of a LLaMA config with this geometry, unscaled."""
    block = {} if geometry.num_turning is None else NoScaling().config_patch(geometry).rope_parameters
    return {
        "model_type": "llama",
        "hidden_size": geometry.rotary_dim,
        "num_attention_heads": 1,
        "head_dim": geometry.rotary_dim,
        "max_position_embeddings": geometry.original_max_position_embeddings,
        "rope_theta": geometry.rope_theta,
        **({"rope_parameters": block} if block else {}),
    }


def _with_length(config: Mapping[str, Any], length: int) -> dict[str, Any]:
    """Returns a config with the length that the file leaves to its class."""
    section = text_section(config)
    if section.get("max_position_embeddings") is not None:
        return dict(config)
    filled = {**section, "max_position_embeddings": length}
    return filled if section is config else {**config, "text_config": filled}


def _tokenizer_config(location: str) -> dict[str, Any]:
    try:
        return read_object(home_path(location) / "tokenizer_config.json")
    except ConfigError:
        return {}


def tokenizer_limit(config: Mapping[str, Any]) -> int | None:
    """Returns ``model_max_length`` of a ``tokenizer_config.json``; None where it sets no real limit [tokens]."""
    limit = config.get("model_max_length")
    return int(limit) if isinstance(limit, int | float) and 0 < limit < NO_LIMIT else None
