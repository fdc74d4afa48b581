"""Rotary geometry and current scaling method out of a Hugging Face config, v4 or v5 dialect.

A config is read as a plain dictionary, so that ``inspect`` needs neither torch nor transformers:

- transformers 4 wrote ``rope_theta`` and ``rope_scaling`` (null without scaling) at the top level,
  and older files call the type ``type``;
- transformers 5 writes one ``rope_parameters`` block with ``rope_type`` and ``rope_theta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.dialects import (
    TYPES_WITH_ORIGINAL_LENGTH,
    refuse_unsupported,
    scaling_block,
    scaling_type,
    text_section,
    trained_length,
)
from ropectl.hf.families import SELF_CONTAINED_CONFIGS
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import method_from_native

#: Keys without which transformers refuses a block of this type.
_REQUIRED_KEYS = {
    "llama3": ("low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
}


@dataclass(frozen=True)
class RopeDescription:
    """What a config says about the rotary embedding.

    Attributes:
        geometry: What the model was trained with.
        method: The scaling the config already applies; ``none`` where it applies none.
        max_position_embeddings: The context the config declares [tokens].
        overridden: Whether the trained length is the user's word and not the config's, so that a model
            built from the config computes something else until a method is applied.
        warnings: What a person should know about the reading.
    """

    geometry: RopeGeometry
    method: ScalingMethod
    max_position_embeddings: int
    overridden: bool = False
    warnings: tuple[str, ...] = field(default=())

    def capacity(self, method: ScalingMethod) -> int | None:
        """Returns the context that ``method`` is made for on this model [tokens]; None if it follows the length.

        For the checkpoint's own scaling that is what the checkpoint declares, which need not be factor times L.
        """
        capacity = method.capacity(self.geometry)
        if capacity is not None and method == self.method and method.native in TYPES_WITH_ORIGINAL_LENGTH:
            return self.max_position_embeddings
        return capacity


def is_self_contained(config: Mapping[str, Any]) -> bool:
    """Returns whether the file says all about the rotary embedding, leaving nothing to its class's defaults."""
    section = text_section(config)
    named = all(section.get(key) for key in ("max_position_embeddings", "hidden_size", "num_attention_heads"))
    has_base = section.get("rope_theta") is not None or scaling_block(section).get("rope_theta") is not None
    return named and has_base and section.get("model_type") in SELF_CONTAINED_CONFIGS


def describe_rope(config: Mapping[str, Any], original_length: int | None = None) -> RopeDescription:
    """Returns geometry and scaling method of a config.

    Args:
        config: The content of ``config.json``, or ``PreTrainedConfig.to_dict()``.
        original_length: The trained length, where the config does not say it or says it wrongly.

    Raises:
        ConfigError: If the config contradicts itself or holds an impossible value.
        UnsupportedModelError: If the model has no rotary embedding of one kind for all layers.
    """
    section = text_section(config)
    block = scaling_block(section)
    refuse_unsupported(section, block)
    rope_type = scaling_type(block)
    warnings: list[str] = []
    theta = _rope_theta(section, block, warnings)
    max_positions = section.get("max_position_embeddings")
    if max_positions is None:
        raise UnsupportedModelError(
            "The config has no max_position_embeddings: it is not a model with rotary positions."
        )
    if int(max_positions) != max_positions:
        raise ConfigError(f"max_position_embeddings = {max_positions} is not a whole number of tokens.")
    length = original_length or trained_length(section, block, rope_type, int(max_positions), warnings)
    geometry = RopeGeometry(_rotary_dim(section, block), theta, length)
    parameters = {**block, "rope_type": rope_type, "rope_theta": theta}
    absent = [key for key in _REQUIRED_KEYS.get(rope_type, ()) if block.get(key) is None]
    if absent:
        raise ConfigError(
            f"The config scales with {rope_type!r} but does not say {', '.join(absent)}.", "Mend config.json."
        )
    if rope_type in ("yarn", "longrope") and block.get("factor") is None:
        parameters["factor"] = max_positions / length  # as transformers derives it
    method = method_from_native(parameters, geometry)
    if method is None:
        raise UnsupportedModelError(
            f"The config scales its rotary embedding with rope_type {rope_type!r}, which ropectl does not know."
        )
    method.frequencies(geometry)  # lists of a wrong length and the like show here
    overridden = original_length is not None and rope_type not in ("default", "linear")
    return RopeDescription(geometry, method, int(max_positions), overridden, tuple(warnings))


def _rope_theta(section: Mapping[str, Any], block: Mapping[str, Any], warnings: list[str]) -> float:
    inner, outer = block.get("rope_theta"), section.get("rope_theta")
    if inner is None and outer is None:
        raise UnsupportedModelError(
            "The config has no rope_theta: it is not a model with a rotary embedding that can be scaled."
        )
    if inner is not None and outer is not None and inner != outer:
        warnings.append(
            f"rope_theta stands twice: {inner:g} in the scaling block (used by transformers 5) and {outer:g} beside it "
            "(used by transformers 4)."
        )
    return float(inner if inner is not None else outer or 0)


def _rotary_dim(section: Mapping[str, Any], block: Mapping[str, Any]) -> int:
    head_dim = section.get("head_dim")
    if head_dim is None:
        hidden, heads = section.get("hidden_size"), section.get("num_attention_heads")
        if not hidden or not heads:
            raise UnsupportedModelError("The config has neither head_dim nor hidden_size and num_attention_heads.")
        head_dim = hidden // heads
    share = block.get("partial_rotary_factor", section.get("partial_rotary_factor"))
    if share is None:
        return int(head_dim)
    if not 0 < share <= 1:
        raise ConfigError(f"partial_rotary_factor = {share} is not possible: it must be greater than 0 and at most 1.")
    if share < 1 and section.get("model_type") in SELF_CONTAINED_CONFIGS:
        raise UnsupportedModelError(
            f"The config says partial_rotary_factor = {share}, but models of type {section.get('model_type')!r} rotate whole heads."
        )
    return int(head_dim * share)
