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
from ropectl.hf.families import (
    REFUSED_CONFIG_KEYS,
    REFUSED_MODEL_TYPES,
    REFUSED_ROPE_KEYS,
    SELF_CONTAINED_CONFIGS,
)
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.pi import PositionInterpolation
from ropectl.rope.registry import method_from_native

#: Types whose formula reads the trained length from ``original_max_position_embeddings``.
TYPES_WITH_ORIGINAL_LENGTH = ("yarn", "llama3", "longrope")


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


def text_section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the part of a config that describes the text model."""
    nested = config.get("text_config")
    return nested if isinstance(nested, Mapping) and "hidden_size" in nested else config


def is_self_contained(config: Mapping[str, Any]) -> bool:
    """Returns whether the file says all about the rotary embedding, leaving nothing to its class's defaults."""
    section = text_section(config)
    named = all(section.get(key) for key in ("max_position_embeddings", "hidden_size", "num_attention_heads"))
    has_base = section.get("rope_theta") is not None or _block(section).get("rope_theta") is not None
    return named and has_base and section.get("model_type") in SELF_CONTAINED_CONFIGS


def check_dialects(config: Mapping[str, Any]) -> None:
    """Checks what is lost once transformers has read and completed a config.

    Raises:
        ConfigError: If the file contradicts itself, or scales without saying the trained length.
    """
    section = text_section(config)
    old, new = section.get("rope_scaling"), section.get("rope_parameters")
    if old and new:
        left, right = ({k: v for k, v in block.items() if k not in ("type", "rope_theta")} for block in (old, new))
        kinds = _rope_type(old), _rope_type(new)
        if kinds[0] != kinds[1] or {**right, **left} != {**left, **right}:
            raise ConfigError(
                f"The config contradicts itself: rope_scaling says {dict(old)}, rope_parameters says {dict(new)}.",
                "Keep one of them in config.json.",
            )
        if old.get("rope_theta") is None and section.get("rope_theta") is None and new.get("rope_theta") is not None:
            raise ConfigError(
                f"rope_scaling, which has no rope_theta, takes the place of rope_parameters, whose rope_theta is "
                f"{new['rope_theta']:g}: transformers would silently use the default of the model's class.",
                "Write rope_theta beside rope_scaling in config.json.",
            )
    block = _block(section)
    if section.get("max_position_embeddings") is not None:
        _trained_length(section, block, _rope_type(block), section["max_position_embeddings"], [])


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
    block = _block(section)
    _refuse_unsupported(section, block)
    rope_type = _rope_type(block)
    warnings: list[str] = []
    theta = _rope_theta(section, block, warnings)
    max_positions = section.get("max_position_embeddings")
    if max_positions is None:
        raise UnsupportedModelError(
            "The config has no max_position_embeddings: it is not a model with rotary positions."
        )
    if int(max_positions) != max_positions:
        raise ConfigError(f"max_position_embeddings = {max_positions} is not a whole number of tokens.")
    length = original_length or _trained_length(section, block, rope_type, int(max_positions), warnings)
    geometry = RopeGeometry(_rotary_dim(section, block), theta, length)
    parameters = {**block, "rope_type": rope_type, "rope_theta": theta}
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


def _refuse_unsupported(section: Mapping[str, Any], block: Mapping[str, Any]) -> None:
    reasons = [reason for key, reason in REFUSED_CONFIG_KEYS.items() if section.get(key)]
    reasons += [reason for key, reason in REFUSED_ROPE_KEYS.items() if block.get(key)]
    reasons += [reason for kind, reason in REFUSED_MODEL_TYPES.items() if section.get("model_type") == kind]
    if reasons:
        raise UnsupportedModelError(
            f"Models of type {section.get('model_type')!r} are not supported yet: {reasons[0]}."
        )


def _block(section: Mapping[str, Any]) -> dict[str, Any]:
    """The scaling block; as in transformers, a non-null ``rope_scaling`` comes before ``rope_parameters``."""
    block = section.get("rope_scaling") or section.get("rope_parameters") or {}
    nested = [key for key, value in block.items() if isinstance(value, Mapping)]
    if nested:
        raise UnsupportedModelError(
            f"The config gives rotary parameters per layer type ({', '.join(nested)}); such models are not supported yet."
        )
    return dict(block)


def _rope_type(block: Mapping[str, Any]) -> str:
    new, old = block.get("rope_type"), block.get("type")
    if new is not None and old is not None and new != old:
        raise ConfigError(
            f"The config contradicts itself: rope_type is {new!r}, type is {old!r}.", "Keep one of them in config.json."
        )
    return str(new or old or "default")


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


def _trained_length(
    section: Mapping[str, Any], block: Mapping[str, Any], rope_type: str, max_positions: int, warnings: list[str]
) -> int:
    outer, inner = section.get("original_max_position_embeddings"), block.get("original_max_position_embeddings")
    if rope_type in TYPES_WITH_ORIGINAL_LENGTH:
        given = outer if outer is not None else inner  # the top-level key wins in transformers
        if given is None:
            raise ConfigError(
                f"The config scales with {rope_type!r} but does not say the trained length: "
                f"max_position_embeddings = {max_positions} may be that or the extended one.",
                "Say it: --original-length N",
            )
        return int(given)
    if rope_type == "linear" and inner is None:
        factor = PositionInterpolation.create({"factor": block.get("factor")}).factor
        length = round(max_positions / factor)
        warnings.append(
            f"Linear scaling by {factor:g} without the trained length: taken as max_position_embeddings / factor = "
            f"{length}. If {max_positions} is the trained length, say --original-length {max_positions}."
        )
        return length
    if rope_type == "dynamic" and inner is not None and inner != max_positions:
        warnings.append(
            f"Dynamic scaling starts at max_position_embeddings = {max_positions}; the original length of {inner} in the "
            f"config is read by no runtime. If {inner} is the trained length, this checkpoint is not scaled up to {max_positions}."
        )
        return max_positions
    return int(inner) if inner is not None else max_positions


def _rotary_dim(section: Mapping[str, Any], block: Mapping[str, Any]) -> int:
    head_dim = section.get("head_dim")
    if head_dim is None:
        hidden, heads = section.get("hidden_size"), section.get("num_attention_heads")
        if not hidden or not heads:
            raise UnsupportedModelError("The config has neither head_dim nor hidden_size and num_attention_heads.")
        head_dim = hidden // heads
    share = block.get("partial_rotary_factor") or section.get("partial_rotary_factor") or 1.0
    return int(head_dim * share)
