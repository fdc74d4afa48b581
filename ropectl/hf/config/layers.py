"""Reads configs that give every layer type a rotary block of its own, and how far a window lets a layer see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.errors import ConfigError
from ropectl.hf.config.families import (
    DEFAULT_LAYER_TYPE,
    LAYERS_WITHOUT_ROPE,
    UNREAD_IN_LAYER_BLOCKS,
    WINDOW_KEYS,
    WINDOWED_LAYERS,
    family_of,
)
from ropectl.names import name_hint
from ropectl.printable import shorten


def layer_blocks(section: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the block of every layer type that rotates; empty for a config with one block for all layers."""
    block = section.get("rope_parameters") or {}
    return {str(key): dict(value) for key, value in block.items() if isinstance(value, Mapping)}


def layer_types(section: Mapping[str, Any]) -> list[str]:
    """Returns the layer types that have a block and occur in the model; empty for a config with one block for all."""
    types, present = list(layer_blocks(section)), section.get("layer_types") or ()
    return [kind for kind in types if kind in present] or types


def choose_layer_type(section: Mapping[str, Any], layers: str | None) -> str | None:
    """Returns the layer type that is described and scaled; None for a config with one block for all layers.

    Args:
        section: The config's text part.
        layers: The wanted one; by default the layers that see the whole context.

    Raises:
        ConfigError: If the config has no such layer type; the message lists those it has.
    """
    types = layer_types(section)
    if not types:
        if layers is not None:
            raise ConfigError(
                f"layers = {layers!r} is not possible: this model has one rotary table for all its layers.",
                "Leave out --layers.",
            )
        return None
    if layers is None:
        whole = [kind for kind in types if not is_windowed(kind)]
        return DEFAULT_LAYER_TYPE if DEFAULT_LAYER_TYPE in types else (whole or types)[0]
    if layers not in types:
        raise ConfigError(
            f"layers = {layers!r} is not possible: the layer types with a rotary table are {shorten(', '.join(types), 160)}.",
            name_hint(layers, types),
        )
    return layers


def is_windowed(layer_type: str) -> bool:
    """Returns whether layers of this type see a window only."""
    return any(part in layer_type for part in WINDOWED_LAYERS)


def window_width(section: Mapping[str, Any]) -> int | None:
    """Returns the width of the config's attention windows, whichever layers have one [tokens]; None without windows."""
    flag = section.get("use_sliding_window")
    if flag is False or (flag is None and family_of(section).window_needs_flag):
        return None
    widths = [section[key] for key in WINDOW_KEYS if section.get(key)]
    if not widths and "sliding_window" not in section:
        return family_of(section).default_window
    return int(widths[0]) if widths else None


def attention_window(section: Mapping[str, Any], layer_type: str | None) -> int | None:
    """Returns the window that caps what the scaled layers can attend to [tokens]; None where one of them sees everything.

    Args:
        section: The config's text part.
        layer_type: The layer type that is scaled, where each has its own block.
    """
    width = window_width(section)
    if width is None or family_of(section).rope_only_windowed:
        return None
    if layer_type is not None:
        return width if is_windowed(layer_type) else None
    types = _attending_types(section)
    if types:
        return width if all(is_windowed(kind) for kind in types) else None
    first, depth = section.get("max_window_layers"), section.get("num_hidden_layers")
    if first is not None and depth is not None and section.get("use_sliding_window") is not None:
        return width if first == 0 else None  # Qwen2: the layers before this one see everything
    return width


def layer_warnings(section: Mapping[str, Any], layer_type: str | None) -> list[str]:
    """Returns warnings about which layers a scaling reaches."""
    unread = [key for key in UNREAD_IN_LAYER_BLOCKS if key in layer_blocks(section).get(layer_type or "", {})]
    warnings = [
        f"{key} in the block of one layer type is not read by transformers, which computes without it (as here)."
        for key in unread
    ]
    width = window_width(section)
    types = layer_types(section)
    only_windowed = bool(types) and all(is_windowed(kind) for kind in types)
    kinds = _attending_types(section)
    sees_all = not kinds or not all(is_windowed(kind) for kind in kinds)
    if width is not None and sees_all and (family_of(section).rope_only_windowed or only_windowed):
        warnings.append(
            f"Only the layers with a window of {width} tokens have rotary positions; those that see the whole context have "
            "none. Scaling changes hardly anything past the window."
        )
    return warnings


def _attending_types(section: Mapping[str, Any]) -> list[str]:
    types = section.get("layer_types") or ()
    return [kind for kind in types if not any(part in kind for part in LAYERS_WITHOUT_ROPE)]
