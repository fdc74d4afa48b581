"""Reads how wide heads are and how much of them rotates; refuses sizes that no model can have before anything completes a config.

transformers takes some of them as they are, and refuses others in its own words once it has read much more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.dialects import CORRECT_FILE, check_type, text_section
from ropectl.hf.config.families import (
    LATENT_ATTENTION_KEY,
    LENGTH_KEYS,
    SELF_CONTAINED_CONFIGS,
    WINDOW_KEYS,
    family_of,
    name_of,
    named,
)
from ropectl.hf.config.layers import layer_blocks
from ropectl.printable import shown
from ropectl.rope.proportional import PROPORTIONAL, SHARE, turning_pairs

#: Largest width and length: positions, tokens and offsets are 32-bit integers in most kernels and file formats.
MAX_SIZE = 2**31 - 1

#: Largest number of layers, of heads, and width of a head: far above every released model, and low enough that a typing
#: error does not make transformers list more layers than memory holds.
MAX_COUNT = 65_536

#: Keys of the text part, under all names that families have for them -> the smallest and the largest whole number.
_RANGES: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "vocab_size"), (1, MAX_SIZE)),
    **dict.fromkeys(("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner"), (1, MAX_SIZE)),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), (1, MAX_COUNT)),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), (1, MAX_COUNT)),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), (1, MAX_COUNT)),
    **dict.fromkeys(("head_dim", "attention_head_dim", LATENT_ATTENTION_KEY), (1, MAX_COUNT)),
    **dict.fromkeys(("max_position_embeddings", "max_seq_len", "original_max_position_embeddings"), (2, MAX_SIZE)),
    **dict.fromkeys(WINDOW_KEYS, (0, MAX_SIZE)),  # 0 is how files of llama.cpp say that there is none
}

#: Of these, those that some families say for every layer by itself; 0 is then a layer that has none.
_PER_LAYER = ("num_key_value_heads", "num_kv_heads", "intermediate_size", "ffn_hidden_size", "ffn_dim")

_ORIGINAL = "original_max_position_embeddings"

#: The one that is checked to be a whole number where it is used: some files write it with a decimal point.
_ANY_NUMBER = "max_position_embeddings"


def check_sizes(config: Mapping[str, Any]) -> None:
    """Checks that the sizes in a file are possible, and fit each other as far as the file says them.

    Args:
        config: The file's content.

    Raises:
        ConfigError: Naming the key, its value and what is allowed.
        UnsupportedModelError: If no part of a head rotates.
    """
    section = text_section(config)
    if section.get(LATENT_ATTENTION_KEY) == 0:
        raise UnsupportedModelError(f"The config says {LATENT_ATTENTION_KEY} = 0: this model has no rotary positions.")
    is_uniform = section.get("model_type") in SELF_CONTAINED_CONFIGS
    for key, (low, high) in _RANGES.items():
        value = section.get(key)
        is_list = isinstance(value, list) and key in _PER_LAYER and not is_uniform
        items: Any = value if is_list else [value]
        smallest = 0 if is_list else low
        for item in items:
            check_type(key, item, float if key == _ANY_NUMBER else int)
            _check_range(key, item, smallest, high)
    for key in LENGTH_KEYS:
        check_type(key, section.get(key), float)
    for block in (section.get("rope_scaling"), section.get("rope_parameters"), *layer_blocks(section).values()):
        _check_range(_ORIGINAL, (block or {}).get(_ORIGINAL), *_RANGES[_ORIGINAL])
    _check_groups(section)
    _check_layers(section)


def rotated_part(
    section: Mapping[str, Any], block: Mapping[str, Any], layer_type: str | None, rope_type: str
) -> tuple[int, int | None]:
    """Returns d, and how many pairs turn where some of them stand still.

    Args:
        section: The config's text part.
        block: The scaling block.
        layer_type: The layer type that the block is of; None for one block.
        rope_type: The type of the block.

    Raises:
        ConfigError: If no such part of a head can rotate.
        UnsupportedModelError: If the config does not say how wide a head is, or its class rotates another part.
    """
    head_dim = _head_dim(section, layer_type)
    outer = section.get("partial_rotary_factor", section.get(family_of(section).share_key))
    share = block.get("partial_rotary_factor", outer if layer_type is None else None)
    if share is None:
        _check_even(head_dim, f"{_head_source(section)} = {head_dim}")
        return head_dim, None
    if not 0 < share <= 1:
        raise ConfigError(f"partial_rotary_factor = {share} is not possible: it must be greater than 0 and at most 1.")
    if rope_type == PROPORTIONAL:
        _check_even(head_dim, f"{_head_source(section)} = {head_dim}")
        turning = turning_pairs({SHARE: share}, head_dim)
        return head_dim, None if turning == head_dim // 2 else turning
    if share < 1 and section.get("model_type") in SELF_CONTAINED_CONFIGS:
        raise UnsupportedModelError(
            f"The config says partial_rotary_factor = {share}, but models of type {section.get('model_type')!r} rotate whole heads."
        )
    rotary_dim = int(head_dim * share)
    _check_even(
        rotary_dim, f"partial_rotary_factor = {share} of {_head_source(section)} = {head_dim} rotates {rotary_dim}"
    )
    return rotary_dim, None


def _head_source(section: Mapping[str, Any]) -> str:
    """Returns where a config says the width of a head."""
    given = next((key for key in ("head_dim", LATENT_ATTENTION_KEY) if named(section, key) is not None), None)
    return name_of(section, given) if given else "hidden_size / num_attention_heads"


def _check_even(rotary_dim: int, words: str) -> None:
    if rotary_dim % 2:
        raise ConfigError(f"The config's {words}: channels rotate in pairs, so it must be even.", CORRECT_FILE)


def _head_dim(section: Mapping[str, Any], layer_type: str | None) -> int:
    """Returns the width that the table is made for; some families give single layers another one than the rest."""
    kinds = section.get("layer_types") or ()
    own = section.get("per_layer_config") or {}
    widths = [
        changes["head_dim"]
        for index, changes in own.items()
        if int(index) < len(kinds) and kinds[int(index)] == layer_type and changes.get("head_dim")
    ]
    return int(widths[0]) if widths else _head_width(section)


def _head_width(section: Mapping[str, Any]) -> int:
    """Returns the width of a head, given or derived."""
    width = named(section, "head_dim")
    if width is None:
        width = section.get(LATENT_ATTENTION_KEY)
    if width is not None:
        return int(width)
    hidden, heads = named(section, "hidden_size"), named(section, "num_attention_heads")
    if not hidden or not heads:
        raise UnsupportedModelError("The config has neither head_dim nor hidden_size and num_attention_heads.")
    if hidden % heads:
        raise ConfigError(
            f"The config's {name_of(section, 'hidden_size')} = {hidden} is not a multiple of "
            f"{name_of(section, 'num_attention_heads')} = {heads}, and no head_dim is given.",
            CORRECT_FILE,
        )
    return int(hidden // heads)


def _check_range(key: str, value: Any, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise ConfigError(
            f"The config's {key} is {shown(value)}, too {'small' if value < low else 'large'}: it must be at least {low} and at "
            f"most {high}.",
            CORRECT_FILE,
        )


def _check_groups(section: Mapping[str, Any]) -> None:
    """Checks that each head of keys and values serves equally many heads."""
    heads = named(section, "num_attention_heads")
    name = next((key for key in ("num_key_value_heads", "num_kv_heads") if isinstance(section.get(key), int)), None)
    if name is not None and isinstance(heads, int) and heads % section[name]:
        raise ConfigError(
            f"The config's {name_of(section, 'num_attention_heads')} = {heads} is not a multiple of {name} = {section[name]}.",
            CORRECT_FILE,
        )


def _check_layers(section: Mapping[str, Any]) -> None:
    """Checks that every layer has its type."""
    types, depth, own = (section.get(key) for key in ("layer_types", "num_hidden_layers", "per_layer_config"))
    if own is not None and not (isinstance(own, Mapping) and all(isinstance(each, Mapping) for each in own.values())):
        raise ConfigError(f"The config's per_layer_config is {shown(own)}, not an object of objects.", CORRECT_FILE)
    if types is None:
        return
    if not isinstance(types, list) or not all(isinstance(kind, str) for kind in types):
        raise ConfigError(f"The config's layer_types is {shown(types)}, not a list of names.", CORRECT_FILE)
    if depth is not None and len(types) != depth:
        raise ConfigError(
            f"The config's layer_types has {len(types)} entries, but num_hidden_layers = {depth}: each layer needs one.",
            CORRECT_FILE,
        )
