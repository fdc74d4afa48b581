"""Chooses the config that carries a method in a model's family: the native type where that is exact, else the universal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ropectl.errors import MethodError
from ropectl.hf.config.dialects import block_in_force, text_section
from ropectl.hf.config.families import LATENT_ATTENTION_KEY, UNREAD_IN_LAYER_BLOCKS, family_of
from ropectl.hf.config.layers import layer_blocks
from ropectl.rope.config_patch import RopeConfigPatch, universal_config
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.abf import AdjustedBaseFrequency

#: Methods that need no universal form, for models in which all pairs turn and for those in which some stand still.
_NATIVE = "yarn, pi, llama3, ntk, abf"
_NATIVE_PROPORTIONAL = "pi, ntk, abf, and dynamic-ntk frozen at one length"


def family_patch(
    method: ScalingMethod, geometry: RopeGeometry, config_section: Mapping[str, Any], seq_len: int | None = None
) -> RopeConfigPatch:
    """Returns the config that a model or checkpoint of this family is given for a method.

    The method's own choice (:meth:`ScalingMethod.config_patch`), unless the family's classes refuse that
    type or compute something else from it: then the universal form. Keys that other runtimes read are left
    out where this family's attention reads them too.

    Args:
        method: The method.
        geometry: What the model was trained with.
        config_section: The config, or its text part.
        seq_len: Freeze a length-dependent method at this length [tokens].

    Raises:
        MethodError: If the method follows the length and the family can only hold one set of frequencies, or
            if it needs the universal form and the family cannot carry it.
    """
    section = text_section(config_section)
    patch = method.config_patch(geometry, seq_len)
    is_exact = _is_exact(patch, geometry, section)
    if method.depends_on_seq_len and seq_len is None and (not is_exact or geometry.num_turning is not None):
        rope_type = f"rope_type {patch.rope_parameters['rope_type']!r}"
        how = rope_type if geometry.num_turning is None else "pairs that stand still"
        raise MethodError(
            f"{method.label} follows the length of the sequence, which models of type {section.get('model_type')!r} "
            f"cannot do with {how}.",
            "Freeze it at one length.",
        )
    if not is_exact:
        patch = universal_config(geometry, method.frequencies(geometry, seq_len), patch.max_position_embeddings)
    reason = family_of(section).no_universal
    if reason and patch.rope_parameters["rope_type"] == "longrope":
        raise MethodError(
            f"{method.label} has no config for models of type {section.get('model_type')!r}: {reason}.",
            f"Methods with a type of their own work: {_NATIVE if geometry.num_turning is None else _NATIVE_PROPORTIONAL}.",
        )
    return _with_family_keys(patch, geometry, section)


def _is_exact(patch: RopeConfigPatch, geometry: RopeGeometry, section: Mapping[str, Any]) -> bool:
    """Returns whether the family's classes compute from the block what all others do."""
    family = family_of(section)
    if family.rope_types and patch.rope_parameters["rope_type"] not in family.rope_types:
        return False
    length = patch.rope_parameters.get("original_max_position_embeddings")
    if family.keeps_original_length and length not in (None, _length_in_force(section, geometry)):
        return False
    return not layer_blocks(section) or not any(key in patch.rope_parameters for key in UNREAD_IN_LAYER_BLOCKS)


def _with_family_keys(patch: RopeConfigPatch, geometry: RopeGeometry, section: Mapping[str, Any]) -> RopeConfigPatch:
    """Returns a patch with what the family's classes read besides the common keys, without hints that would change them."""
    family, block, hints = family_of(section), dict(patch.rope_parameters), dict(patch.hints)
    if section.get(LATENT_ATTENTION_KEY) is not None:
        hints = {key: value for key, value in hints.items() if not key.startswith("mscale")}
        block = {**_softmax_keys(block, section), **block}
    if family.attention_keys and block["rope_type"] != "default":
        block |= dict.fromkeys(family.attention_keys, block["attention_factor"])
    if family.keeps_original_length:
        block["original_max_position_embeddings"] = _length_in_force(section, geometry)
        if block["rope_type"] == "longrope":  # other runtimes would derive a factor from the two lengths
            hints |= dict.fromkeys(("short_mscale", "long_mscale"), block["attention_factor"])
    return replace(patch, rope_parameters=block, hints=hints)


def _softmax_keys(block: Mapping[str, Any], section: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of the softmax scale in the block in force, where the patch only repeats the same scaling.

    One of them alone, or both with an explicit attention factor, is not part of the method.
    """
    current = block_in_force(section)
    keys = {key: current[key] for key in ("mscale", "mscale_all_dim") if current.get(key) is not None}
    is_same = all(block.get(key) == current.get(key) for key in ("rope_type", "factor"))
    return keys if is_same and (len(keys) == 1 or "attention_factor" in block) else {}


def _length_in_force(section: Mapping[str, Any], geometry: RopeGeometry) -> int:
    """Returns the trained length that the model's attention reads from the block now [tokens]."""
    block = block_in_force(section)
    return int(block.get("original_max_position_embeddings") or geometry.original_max_position_embeddings)


def declaring(patch: RopeConfigPatch, method: ScalingMethod, target: int) -> RopeConfigPatch:
    """Returns a patch that declares a context [tokens], where neither a factor nor a formula in the block says one."""
    says_no_length = method.native == "llama3" or isinstance(method, AdjustedBaseFrequency)
    if not says_no_length or patch.rope_parameters["rope_type"] == "longrope":
        return patch
    return replace(patch, max_position_embeddings=target)
