"""Reads rotary geometry and current scaling method from a Hugging Face config, in the dialect of transformers 4 or 5.

A config is read as a plain dictionary, so that ``inspect`` needs neither torch nor transformers:

- transformers 4 wrote ``rope_theta`` and ``rope_scaling`` (null without scaling) at the top level,
  and older files call the type ``type``;
- transformers 5 writes one ``rope_parameters`` block with ``rope_type`` and ``rope_theta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.hf.config.block_keys import block_warnings, family_parameters, trained_base
from ropectl.hf.config.block_types import check_blocks, check_sections
from ropectl.hf.config.dialects import refuse_unsupported, scaling_block, scaling_type, text_section
from ropectl.hf.config.families import HALF_SPLIT, SELF_CONTAINED_CONFIGS, pairing_of
from ropectl.hf.config.layers import attention_window, choose_layer_type, layer_types, layer_warnings
from ropectl.hf.config.lengths import (
    TYPES_WITH_ORIGINAL_LENGTH,
    declared_length,
    length_notes,
    max_positions,
    trained_length,
)
from ropectl.hf.config.sizes import rotated_part
from ropectl.printable import shown
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.proportional import common_block
from ropectl.rope.registry import method_from_native


@dataclass(frozen=True)
class RopeDescription:
    """The rotary embedding as a config describes it.

    Attributes:
        geometry: What the model was trained with.
        method: The scaling the config already applies; ``none`` where it applies none.
        max_position_embeddings: The context the config declares [tokens].
        overridden: Whether the trained length was given by the user and not by the config, so that a model
            built from the config computes something else until a method is applied.
        warnings: Notes for the user on how the config was read.
        said_length: The trained length that the files say, where the user gave another [tokens]; else None.
        layer_type: The layer type that geometry and method are about; None where all layers share one table.
        layer_types: The layer types that have a table of their own; empty where all share one.
        window: The attention window of the layers that are scaled [tokens]; None where they see the whole context.
        pairing: The channels of a head that turn together: ``half-split`` or ``interleaved``.
    """

    geometry: RopeGeometry
    method: ScalingMethod
    max_position_embeddings: int
    overridden: bool = False
    warnings: tuple[str, ...] = ()
    layer_type: str | None = None
    layer_types: tuple[str, ...] = ()
    window: int | None = None
    pairing: str = HALF_SPLIT
    said_length: int | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The warnings, and what the user's own trained length is against."""
        if self.said_length is None:
            return self.warnings
        given = self.geometry.original_max_position_embeddings
        return (
            *self.warnings,
            f"--original-length {given}, though the config says {self.said_length} tokens: methods, factors and verdicts count "
            f"from {given}, and hold only if the model was trained at that.",
        )

    def capacity(self, method: ScalingMethod) -> int | None:
        """Returns the length that ``method`` is made for on this model [tokens]; None if it follows the length.

        For the checkpoint's own scaling that is what the checkpoint declares, which need not be factor times L.
        """
        capacity = method.capacity(self.geometry)
        if capacity is not None and method == self.method and method.native in TYPES_WITH_ORIGINAL_LENGTH:
            return self.max_position_embeddings
        return capacity

    def target(self, method: ScalingMethod) -> int:
        """Returns the context that ``method`` aims at on this model [tokens].

        The factor of ``llama3`` promises no length: Llama 3.1 declares 131072 over 8 * 8192, Llama 3.2 as much over
        32 * 8192. As the checkpoint's own scaling it is meant for what the checkpoint declares.
        """
        is_own = method == self.method and method.native == "llama3"
        return self.max_position_embeddings if is_own else method.target_length(self.geometry)


def window_note(description: RopeDescription, target_length: int) -> str | None:
    """Returns a warning where an attention window ends before the context that is wanted; None otherwise.

    Args:
        description: What the config says.
        target_length: The wanted context [tokens].
    """
    if description.window is None or description.window >= target_length:
        return None
    return (
        f"Attention reaches back {description.window} tokens only (sliding window): at {target_length} tokens, what is "
        "older is out of sight whatever the scaling. Only how far the window moves is measured."
    )


def is_self_contained(config: Mapping[str, Any]) -> bool:
    """Returns whether the file says everything about the rotary embedding, leaving nothing to its class's defaults."""
    section = text_section(config)
    further = SELF_CONTAINED_CONFIGS.get(str(section.get("model_type")))
    if further is None:
        return False
    has_sizes = all(section.get(key) for key in ("max_position_embeddings", "hidden_size", "num_attention_heads"))
    has_base = section.get("rope_theta") is not None or scaling_block(section).get("rope_theta") is not None
    return has_sizes and has_base and all(section.get(key) is not None for key in further)


def describe_rope(
    config: Mapping[str, Any], original_length: int | None = None, layers: str | None = None
) -> RopeDescription:
    """Returns geometry and scaling method of a config.

    Args:
        config: The content of ``config.json``, or ``PreTrainedConfig.to_dict()``.
        original_length: The trained length, where the config does not give it or gives a wrong one.
        layers: The layer type to describe, where each has its own table; by default the one that sees everything.

    Raises:
        ConfigError: If the config contradicts itself or holds an impossible value.
        UnsupportedModelError: If the model has no rotary embedding that a patch can reach.
    """
    section = text_section(config)
    refuse_unsupported(section)
    check_blocks(section)
    layer_type = choose_layer_type(section, layers)
    block = scaling_block(section, layer_type)
    rope_type = scaling_type(block)
    warnings: list[str] = []
    theta = _rope_theta(section, block, warnings)
    positions = max_positions(section)
    length = original_length or trained_length(section, block, rope_type, positions, warnings)
    warnings += length_notes(section, rope_type, length, is_asked=original_length is not None)
    declared = declared_length(section, rope_type)
    rotary_dim, num_turning = rotated_part(section, block, layer_type, rope_type)
    geometry = RopeGeometry(rotary_dim, theta, length, num_turning)
    check_sections(block, geometry)
    rope_type = str(common_block({**block, "rope_type": rope_type})["rope_type"])
    base = trained_base(section, block, geometry)
    if base is not None:
        geometry, rope_type, theta = replace(geometry, rope_theta=base), "default", base
    parameters = {**block, "rope_type": rope_type, "rope_theta": theta}
    if rope_type in ("yarn", "longrope") and block.get("factor") is None:
        parameters["factor"] = positions / length  # as transformers derives it
        if "factor" in block:
            warnings.append(f"factor is null: the ratio {positions} / {length} = {positions / length:g} is taken.")
    method = method_from_native(family_parameters(section, parameters), geometry)
    if method is None:
        raise UnsupportedModelError(
            f"The config scales its rotary embedding with rope_type {shown(rope_type)}, which ropectl does not know."
        )
    for seq_len in (length, 2 * length):  # finds lists of a wrong length and the like
        method.frequencies(geometry, seq_len)
    warnings += block_warnings(section, parameters, positions, length) + layer_warnings(section, layer_type)
    return RopeDescription(
        geometry,
        method,
        declared,
        overridden=original_length is not None and rope_type not in ("default", "linear"),
        warnings=tuple(warnings),
        layer_type=layer_type,
        layer_types=tuple(layer_types(section)),
        window=attention_window(section, layer_type),
        pairing=pairing_of(section),
    )


def _rope_theta(section: Mapping[str, Any], block: Mapping[str, Any], warnings: list[str]) -> float:
    inner, outer = block.get("rope_theta"), section.get("rope_theta")
    if inner is None and outer is None:
        raise UnsupportedModelError(
            "The config has no rope_theta: it is not a model with a rotary embedding that can be scaled."
        )
    if inner is not None and outer is not None and inner != outer:
        warnings.append(
            f"rope_theta is given twice: {inner:g} in the scaling block (used by transformers 5) and {outer:g} next to it "
            "(used by transformers 4)."
        )
    return float(inner if inner is not None else outer or 0)
