"""The two dialects of a rotary config, and the checks on a file before anything completes or repairs it.

transformers fills missing keys, lets one of two contradicting keys win and warns about impossible values
at most. What a file really says has to be looked at before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.families import REFUSED_CONFIG_KEYS, REFUSED_MODEL_TYPES, REFUSED_ROPE_KEYS
from ropectl.rope.methods.pi import PositionInterpolation

#: Types whose formula reads the trained length from ``original_max_position_embeddings``.
TYPES_WITH_ORIGINAL_LENGTH = ("yarn", "llama3", "longrope")

_WHOLE_KEYS = ("head_dim", "hidden_size", "num_attention_heads", "original_max_position_embeddings")
_NUMBER_KEYS = ("rope_theta", "partial_rotary_factor", "max_position_embeddings")
_BLOCK_NUMBERS = (
    *("rope_theta", "factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
    *("low_freq_factor", "high_freq_factor", "partial_rotary_factor"),
)
_BLOCK_TYPES: dict[str, type] = {
    "rope_type": str,
    "type": str,
    "original_max_position_embeddings": int,
    "truncate": bool,
    "short_factor": list,
    "long_factor": list,
    **dict.fromkeys(_BLOCK_NUMBERS, float),
}


def text_section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the part of a config that describes the text model."""
    nested = config.get("text_config")
    return nested if isinstance(nested, Mapping) and "hidden_size" in nested else config


def scaling_block(section: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the scaling block; as in transformers, a non-null ``rope_scaling`` comes before ``rope_parameters``."""
    block = section.get("rope_scaling") or section.get("rope_parameters") or {}
    nested = [key for key, value in block.items() if isinstance(value, Mapping)]
    if nested:
        raise UnsupportedModelError(
            f"The config gives rotary parameters per layer type ({', '.join(nested)}); such models are not supported yet."
        )
    return dict(block)


def scaling_type(block: Mapping[str, Any]) -> str:
    """Returns the type of a scaling block, under its new or its old key."""
    new, old = block.get("rope_type"), block.get("type")
    if new is not None and old is not None and new != old:
        raise ConfigError(
            f"The config contradicts itself: rope_type is {new!r}, type is {old!r}.", "Keep one of them in config.json."
        )
    return str(new or old or "default")


def check_dialects(config: Mapping[str, Any], knows_length: bool = False) -> None:
    """Checks what is lost once transformers has read and completed a config.

    Args:
        config: The file's content.
        knows_length: Whether the user says the trained length, so that the file need not.

    Raises:
        ConfigError: If the file contradicts itself, or scales without saying the trained length.
    """
    section = text_section(config)
    old, new = section.get("rope_scaling"), section.get("rope_parameters")
    if old and new:
        left, right = ({k: v for k, v in block.items() if k not in ("type", "rope_theta")} for block in (old, new))
        kinds = scaling_type(old), scaling_type(new)
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
    block = scaling_block(section)
    rope_type = scaling_type(block)
    if not knows_length and section.get("max_position_embeddings") is not None:
        trained_length(section, block, rope_type, section["max_position_embeddings"], [])


def trained_length(
    section: Mapping[str, Any], block: Mapping[str, Any], rope_type: str, max_positions: int, warnings: list[str]
) -> int:
    """Returns L as a config says it, adding to ``warnings`` how it was read [tokens]."""
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


def refuse_unsupported(section: Mapping[str, Any], block: Mapping[str, Any]) -> None:
    """Refuses families whose attention reads the scaling block a second time, with the reason."""
    reasons = [reason for key, reason in REFUSED_CONFIG_KEYS.items() if section.get(key)]
    reasons += [reason for key, reason in REFUSED_ROPE_KEYS.items() if block.get(key)]
    reasons += [reason for kind, reason in REFUSED_MODEL_TYPES.items() if section.get("model_type") == kind]
    if reasons:
        raise UnsupportedModelError(
            f"Models of type {section.get('model_type')!r} are not supported yet: {reasons[0]}."
        )


def check_types(config: Mapping[str, Any]) -> None:
    """Checks that numbers are numbers: a text such as "4.0" is read by some runtimes and stops others.

    Raises:
        ConfigError: Naming the key and its value.
    """
    section = text_section(config)
    for key in _WHOLE_KEYS:
        _check_type(key, section.get(key), int)
    for key in _NUMBER_KEYS:
        _check_type(key, section.get(key), float)
    for name in ("rope_scaling", "rope_parameters"):
        block = section.get(name)
        if block is not None and not isinstance(block, Mapping):
            raise ConfigError(f"The config's {name} is {block!r}, not an object with keys.", "Mend config.json.")
        for key, value in (block or {}).items():
            if key in _BLOCK_TYPES:
                _check_type(f"{name}.{key}", value, _BLOCK_TYPES[key])


def _check_type(key: str, value: Any, kind: type) -> None:
    accepted = {int: (int,), float: (int, float), bool: (bool,), str: (str,), list: (list, tuple)}[kind]
    is_wrong = not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool)
    if value is not None and is_wrong:
        word = {
            int: "a whole number",
            float: "a number",
            bool: "true or false",
            str: "text",
            list: "a list of numbers",
        }[kind]
        raise ConfigError(f"The config's {key} is {value!r}, not {word}.", "Mend config.json.")
    if kind is list:
        for item in value or ():
            _check_type(key, item, float)
