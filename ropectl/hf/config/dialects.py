"""Reads the two dialects of a rotary config, and checks a file before anything completes or repairs it.

transformers fills in missing keys, lets one of two contradicting keys win and at most warns about impossible values.
What a file really says has to be checked before.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.families import ROPE_TYPE_ALIASES, family_of
from ropectl.hf.config.layers import choose_layer_type, layer_blocks
from ropectl.hf.config.lengths import max_positions, trained_length
from ropectl.hf.refused_types import refuse_model_type
from ropectl.printable import shorten, shown

#: What to do about a file that says something impossible.
CORRECT_FILE = "Correct config.json."

_NUMBER_KEYS = ("rope_theta", "partial_rotary_factor")
_SWITCHES = ("use_sliding_window", "tie_word_embeddings")
_BLOCK_NUMBERS = (
    *("rope_theta", "factor", "attention_factor", "attn_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
    *("low_freq_factor", "high_freq_factor", "partial_rotary_factor", "short_mscale", "long_mscale", "alpha"),
)
_BLOCK_TYPES: dict[str, type] = {
    "rope_type": str,
    "type": str,
    "original_max_position_embeddings": int,
    "truncate": bool,
    "short_factor": list,
    "long_factor": list,
    "mrope_section": list,
    **dict.fromkeys(_BLOCK_NUMBERS, float),
}
#: Type -> what is accepted for it, and the word for it in messages.
_ACCEPTED: dict[type, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    str: ((str,), "text"),
    list: ((list, tuple), "a list of numbers"),
}


def text_section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the part of a config that describes the text model."""
    nested = config.get("text_config")
    if isinstance(nested, Mapping) and nested and ("hidden_size" in nested or "hidden_size" not in config):
        return nested
    return config


def scaling_block(section: Mapping[str, Any], layer_type: str | None = None) -> dict[str, Any]:
    """Returns the scaling block; as in transformers, a non-null ``rope_scaling`` comes before ``rope_parameters``.

    Args:
        section: The config's text part.
        layer_type: The layer type whose block is wanted; None for configs with one block.
    """
    if layer_type is None:
        return dict(section.get("rope_scaling") or section.get("rope_parameters") or {})
    scaling = section.get("rope_scaling") if layer_type == family_of(section).layer_scaling else None
    return {**layer_blocks(section).get(layer_type, {}), **(scaling or {})}


def block_in_force(section: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the scaling block of the layers that are scaled by default."""
    return scaling_block(section, choose_layer_type(section, None))


def scaling_type(block: Mapping[str, Any]) -> str:
    """Returns the type of a scaling block, under its new or its old key.

    Raises:
        ConfigError: If it is empty or null, which no runtime takes for absent, or the two keys contradict each other.
    """
    for key, other in (("rope_type", ""), ("type", "rope_type")):
        if block.get(key, "?") in ("", None) and not (block.get(key) is None and block.get(other)):
            raise ConfigError(
                f"The config's {key} is {'null' if block[key] is None else 'empty'}: it names no type of scaling.",
                "Write the type, or 'default', or leave the key out.",
            )
    new, old = (ROPE_TYPE_ALIASES.get(str(name), name) for name in (block.get("rope_type"), block.get("type")))
    if new is not None and old is not None and new != old:
        raise ConfigError(
            f"The config contradicts itself: rope_type is {shown(new)}, type is {shown(old)}.",
            "Keep one of them in config.json.",
        )
    return str(new or old or "default")


def check_dialects(config: Mapping[str, Any], knows_length: bool = False) -> None:
    """Checks what cannot be seen any more once transformers has read and completed a config.

    Args:
        config: The file's content.
        knows_length: Whether the user gives the trained length, so that the file need not.

    Raises:
        ConfigError: If the file contradicts itself, or scales without saying the trained length.
    """
    section = text_section(config)
    blocks = layer_blocks(section)
    old = section.get("rope_scaling")
    new = blocks.get(family_of(section).layer_scaling) if blocks else section.get("rope_parameters")
    if old and new:
        _check_agreement(section, old, new)
    given = [block for block in (old, new, *blocks.values()) if (block or {}).get("rope_theta") is not None]
    if "rope_theta" in section and section["rope_theta"] is None and not given:
        raise ConfigError(
            "The config's rope_theta is null, which transformers does not take for absent.",
            "Leave it out of config.json, or write its value.",
        )
    for layer_type in blocks or (None,):
        block = scaling_block(section, layer_type)
        rope_type = scaling_type(block)
        if not knows_length and section.get("max_position_embeddings") is not None:
            trained_length(section, block, rope_type, max_positions(section), [])


def _check_agreement(section: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Checks that both dialects of one block say the same."""
    left, right = ({k: v for k, v in block.items() if k not in ("type", "rope_theta")} for block in (old, new))
    kinds = scaling_type(old), scaling_type(new)
    if kinds[0] != kinds[1] or {**right, **left} != {**left, **right}:
        raise ConfigError(
            f"The config contradicts itself: rope_scaling says {shown(dict(old))}, rope_parameters says {shown(dict(new))}.",
            "Keep one of them in config.json.",
        )
    if old.get("rope_theta") is None and section.get("rope_theta") is None and new.get("rope_theta") is not None:
        raise ConfigError(
            f"rope_scaling, which has no rope_theta, overrides rope_parameters, whose rope_theta is "
            f"{new['rope_theta']:g}: transformers would silently use the default of the model's class.",
            "Write rope_theta next to rope_scaling in config.json.",
        )


def refuse_unsupported(section: Mapping[str, Any]) -> None:
    """Refuses families whose rotations a patch cannot reach, with the reason."""
    refuse_model_type(section)
    for key, value in family_of(section).rope_needs.items():
        if section.get(key) != value:
            raise UnsupportedModelError(
                f"The config says {key} = {shown(section.get(key))}: this model has no rotary positions (others of its type do, with "
                f"{key} = {value})."
            )


def check_types(config: Mapping[str, Any]) -> None:
    """Checks that numbers are numbers: a text such as "4.0" is read by some runtimes and stops others.

    Raises:
        ConfigError: Naming the key and its value.
    """
    section = text_section(config)
    for part in (config, section):
        if part.get("model_type", "?") in (None, ""):
            raise ConfigError(f"The config's model_type is {part['model_type']!r}, not a name.", CORRECT_FILE)
        check_type("model_type", part.get("model_type"), str)
    for key in _NUMBER_KEYS:
        check_type(key, section.get(key), float)
    for key in _SWITCHES:
        check_type(key, section.get(key), bool)
    for name in ("rope_scaling", "rope_parameters"):
        block = section.get(name)
        if block is not None and not isinstance(block, Mapping):
            raise ConfigError(f"The config's {name} is {shown(block)}, not an object with keys.", CORRECT_FILE)
        for key, value in (block or {}).items():
            label = f"{name}.{shorten(key, 40)}"
            if isinstance(value, Mapping):
                for inner, item in value.items():
                    check_type(f"{label}.{shorten(inner, 40)}", item, _BLOCK_TYPES.get(inner))
            check_type(label, value, _BLOCK_TYPES.get(key))


def check_type(key: str, value: Any, kind: type | None) -> None:
    """Checks that a value is of a kind; null is.

    Args:
        key: Its key, for the message.
        value: The value.
        kind: ``int``, ``float``, ``bool``, ``str`` or ``list``, which is of numbers; None for any.

    Raises:
        ConfigError: If it is not.
    """
    if kind is None or value is None:
        return
    accepted, word = _ACCEPTED[kind]
    is_wrong = not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool)
    if is_wrong:
        raise ConfigError(f"The config's {key} is {shown(value)}, not {word}.", CORRECT_FILE)
    if kind is float and not abs(value) <= sys.float_info.max:
        is_whole = isinstance(value, int)  # a huge whole number has too many digits to print
        raise ConfigError(
            f"The config's {key} is {'too large' if is_whole else value}: it must be finite.", CORRECT_FILE
        )
    if kind is list:
        for item in value:
            check_type(key, item, float)
