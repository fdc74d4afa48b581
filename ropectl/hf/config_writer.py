"""A scaling written into a config: one object, both dialects, everything else as it was.

transformers 5 reads ``rope_parameters``; transformers 4, and tools of its time, read ``rope_theta`` and
``rope_scaling``, and take a file without them as unscaled with base 10000, silently. Both are written
from the same patch, so they cannot differ.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ropectl.hf.dialects import text_section
from ropectl.hf.families import KEPT_ROPE_KEYS
from ropectl.rope.method import RopeConfigPatch

#: Legacy spelling of ``rope_type``, left behind by old files.
_REPLACED_KEYS = ("rope_parameters", "rope_scaling", "rope_theta", "original_max_position_embeddings")


def merge_block(current: Mapping[str, Any], patch: RopeConfigPatch) -> dict[str, Any]:
    """Returns the ``rope_parameters`` of a patch, with what belongs to the family and not to the scaling kept.

    Args:
        current: The block that is in force.
        patch: The scaling that takes its place.
    """
    kept = {key: value for key, value in current.items() if key in KEPT_ROPE_KEYS}
    return copy.deepcopy({**kept, **patch.rope_parameters, **patch.hints})


def patched_config(config: Mapping[str, Any], patch: RopeConfigPatch) -> dict[str, Any]:
    """Returns the content of ``config.json`` with a scaling written in both dialects; all other keys unchanged.

    Args:
        config: The file's content as it stands on disk.
        patch: The scaling.
    """
    result: dict[str, Any] = copy.deepcopy(dict(config))
    nested = text_section(result)
    section: dict[str, Any] = result if nested is result else result["text_config"]
    current = section.get("rope_scaling") or section.get("rope_parameters") or {}
    block = merge_block(current, patch)
    for key in _REPLACED_KEYS:
        section.pop(key, None)
    section["max_position_embeddings"] = int(patch.max_position_embeddings)
    section["rope_parameters"] = block
    section["rope_theta"] = block["rope_theta"]
    is_scaled = block["rope_type"] != "default"
    section["rope_scaling"] = {k: v for k, v in block.items() if k != "rope_theta"} if is_scaled else None
    if block["rope_type"] == "longrope":  # transformers 4.48 to 4.57 read it here only
        section["original_max_position_embeddings"] = block["original_max_position_embeddings"]
    return result
