"""Writes a scaling into a config: both dialects from one object, everything else as it was.

transformers 5 reads ``rope_parameters``; transformers 4, and tools of its time, read ``rope_theta`` and
``rope_scaling``, and take a file without them as unscaled with base 10000, silently. Both are written
from the same patch, so they cannot differ.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ropectl.errors import ConfigError
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.families import CHUNKED_POSITIONS, KEPT_ROPE_KEYS, LAYOUT_KEYS, family_of, name_of, named
from ropectl.hf.config.layers import choose_layer_type, layer_blocks
from ropectl.hf.config.lengths import further_lengths
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.proportional import PROPORTIONAL, SHARE

#: Keys that hold the scaling, in one dialect or the other.
REPLACED_KEYS = ("rope_parameters", "rope_scaling", "rope_theta", "original_max_position_embeddings")


def merge_block(current: Mapping[str, Any], patch: RopeConfigPatch) -> dict[str, Any]:
    """Returns the ``rope_parameters`` of a patch, keeping what belongs to the family and not to the scaling.

    Args:
        current: The block that is in force.
        patch: The scaling that takes its place.
    """
    kept = {key: value for key, value in current.items() if key in KEPT_ROPE_KEYS}
    return copy.deepcopy({**kept, **patch.rope_parameters, **patch.hints})


def merge_parameters(current: Mapping[str, Any], patch: RopeConfigPatch, layer_type: str | None) -> dict[str, Any]:
    """Returns the whole ``rope_parameters`` of a config with a patch in it.

    Args:
        current: The ``rope_parameters`` in force: one block, or one for every layer type.
        patch: The scaling that takes its place.
        layer_type: The layer type whose block it replaces; the others stay as they are. None for one block.
    """
    if layer_type is None:
        return merge_block(current, patch)
    return {**copy.deepcopy(dict(current)), layer_type: merge_block(current.get(layer_type) or {}, patch)}


def patched_config(config: Mapping[str, Any], patch: RopeConfigPatch, layer_type: str | None = None) -> dict[str, Any]:
    """Returns the content of ``config.json`` with a scaling written in both dialects; all other keys unchanged.

    Where each layer type has its own block, transformers 4 had keys for some families only; for the others
    its dialect is left out, because no program of its time can run them.

    Args:
        config: The file's content as it is stored.
        patch: The scaling.
        layer_type: The layer type that is scaled, where each has its own block; by default the one that sees everything.

    Raises:
        ConfigError: If the config has no such layer type.
    """
    result: dict[str, Any] = copy.deepcopy(dict(config))
    nested = text_section(result)
    section: dict[str, Any] = result if nested is result else result["text_config"]
    blocks = layer_blocks(section) or _blocks_of_v4(section)
    if blocks:
        _write_nested(section, blocks, patch, layer_type)
    else:
        choose_layer_type(section, layer_type)  # refuses a layer type that is not there
        _write_flat(section, patch)
    _write_length(section, int(patch.max_position_embeddings))
    repair_head_dim(section)
    return result


def _write_length(section: dict[str, Any], length: int) -> None:
    """Writes the context at every place where servers look for it, so that none contradicts another.

    A block that counts positions in chunks is left out: under the patch no position leaves the range that the method is
    made for, most programs never read the block, and those that do would chunk the scaled positions once more.
    """
    further = further_lengths(section)
    section[name_of(section, "max_position_embeddings")] = length
    section |= dict.fromkeys(further, length)
    section.pop(CHUNKED_POSITIONS, None)


def repair_head_dim(section: dict[str, Any]) -> None:
    """Writes ``head_dim`` where it is null: some types of scaling multiply it without a fallback."""
    is_null = "head_dim" in section or family_of(section).null_head_dim
    hidden, heads = named(section, "hidden_size"), named(section, "num_attention_heads")
    if is_null and section.get("head_dim") is None and hidden and heads:
        section["head_dim"] = hidden // heads


def _write_flat(section: dict[str, Any], patch: RopeConfigPatch) -> None:
    block = merge_block(section.get("rope_scaling") or section.get("rope_parameters") or {}, patch)
    family = family_of(section)
    theta_key = family.theta_key
    for key in (*REPLACED_KEYS, theta_key):
        section.pop(key, None)
    section["rope_parameters"] = block
    section[theta_key] = section["rope_theta"] = block["rope_theta"]
    section["rope_scaling"] = _scaling_of_v4(block)
    if (
        SHARE in block and block["rope_type"] != PROPORTIONAL
    ):  # transformers 4 reads how much rotates at the top level only
        section[family.share_key] = block[SHARE]
    if block["rope_type"] == "longrope":  # transformers 4.48 to 4.57 read it here only
        section["original_max_position_embeddings"] = block["original_max_position_embeddings"]


def _write_nested(
    section: dict[str, Any], blocks: dict[str, Any], patch: RopeConfigPatch, layer_type: str | None
) -> None:
    current = {**(section.get("rope_parameters") or {}), **blocks}
    chosen = choose_layer_type({"rope_parameters": current}, layer_type)
    parameters = merge_parameters(current, patch, chosen)
    family = family_of(section)
    if family.layer_theta_keys:
        for key in (*REPLACED_KEYS, *family.layer_theta_keys.values()):
            section.pop(key, None)
        section |= _layers_of_v4(section, parameters)
    section["rope_parameters"] = parameters


def _layers_of_v4(section: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys that transformers 4 read instead; empty where it cannot say what the blocks say."""
    family = family_of(section)
    bases: dict[str, float] = {}
    for layer_type, key in family.layer_theta_keys.items():
        if bases.setdefault(key, parameters[layer_type]["rope_theta"]) != parameters[layer_type]["rope_theta"]:
            return {}
    others = [
        block for kind, block in parameters.items() if isinstance(block, Mapping) and kind != family.layer_scaling
    ]
    if any(block.get("rope_type", "default") != "default" for block in others):
        return {}
    return {**bases, "rope_scaling": _scaling_of_v4(parameters[family.layer_scaling])}


def _blocks_of_v4(section: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the blocks per layer type that a file of transformers 4 means; empty where it names no base for each."""
    family = family_of(section)
    if not family.layer_theta_keys:
        return {}
    absent = [key for key in family.layer_theta_keys.values() if section.get(key) is None]
    if absent:
        raise ConfigError(
            f"The config does not say {', '.join(absent)}: the bases of its layers are the defaults of their class.",
            "Write the config with transformers 5 first, which names them.",
        )
    blocks: dict[str, dict[str, Any]] = {
        layer_type: {"rope_type": "default", "rope_theta": section[key]}
        for layer_type, key in family.layer_theta_keys.items()
    }
    blocks[family.layer_scaling].update(section.get("rope_scaling") or {})
    return blocks


def _scaling_of_v4(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the old key's content; None where there is neither a scaling nor a layout of multimodal positions."""
    said = {key: copy.deepcopy(value) for key, value in block.items() if key != "rope_theta"}
    is_silent = said.get("rope_type", "default") == "default" and not said.keys() & set(LAYOUT_KEYS)
    return None if is_silent else said
