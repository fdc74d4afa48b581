"""Says which keys each type of scaling block reads; refuses blocks without them, and names keys that have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError, MethodError
from ropectl.hf.config.dialects import CORRECT_FILE, scaling_type
from ropectl.hf.config.families import (
    KEPT_ROPE_KEYS,
    LATENT_ATTENTION_KEY,
    SELF_CONTAINED_CONFIGS,
    UNREAD_IN_LAYER_BLOCKS,
    family_of,
)
from ropectl.names import near_names
from ropectl.printable import shorten, shown
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.proportional import PROPORTIONAL

#: A divisor below this makes its pair turn faster than in training. Searched lists hold values of 1 but for rounding: the
#: first one of MiniCPM 4 is 0.9978.
SLOWEST_SPEEDUP = 0.99

#: Unread keys that are named one by one in a message, and the longest name there [characters].
_NAMED_KEYS, _NAME_WIDTH = 8, 40


@dataclass(frozen=True)
class BlockType:
    """The keys of a type of scaling block.

    Attributes:
        needed: Keys without whose value nothing can be computed.
        optional: Keys that may be absent, or null, which is the same.
        definite: Keys that may be absent, but not null: transformers then stops, or takes another value than its default.
    """

    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    definite: tuple[str, ...] = ("partial_rotary_factor",)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that have an effect under this type."""
        return (*self.needed, *self.optional, *self.definite, *_OF_EVERY_TYPE)


#: Keys that are read whatever the type. The trained length is one: where the formula does not need it, ropectl does.
_OF_EVERY_TYPE = ("rope_type", "type", "rope_theta", "original_max_position_embeddings", *KEPT_ROPE_KEYS)

#: Type -> its keys, as transformers 5.24 validates and reads them (``modeling_rope_utils``), with those by which other
#: runtimes compute the same: ``attn_factor`` (see :mod:`ropectl.hf.config.block_keys`), ``short_mscale`` and
#: ``long_mscale``. ``finetuned`` stands in the files of YaRN's authors, for their own code.
BLOCK_TYPES: dict[str, BlockType] = {
    "default": BlockType(definite=()),
    "linear": BlockType(("factor",)),
    "dynamic": BlockType(("factor",)),
    "yarn": BlockType(
        optional=(
            *("factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
            *("attn_factor", "finetuned"),
        ),
        definite=("partial_rotary_factor", "truncate"),
    ),
    "llama3": BlockType(("factor", "low_freq_factor", "high_freq_factor")),
    "longrope": BlockType(
        ("short_factor", "long_factor"), ("factor", "attention_factor", "short_mscale", "long_mscale")
    ),
    PROPORTIONAL: BlockType(optional=("partial_rotary_factor",), definite=("factor",)),
}


def check_blocks(section: Mapping[str, Any]) -> None:
    """Checks that every scaling block has the values that its type needs.

    Args:
        section: The config's text part.

    Raises:
        ConfigError: If a key is null where that is not the same as leaving it out, or a model with one table for all layers
            has a block for one layer type.
        MethodError: If a value is missing.
    """
    for label, block in _blocks(section):
        if "." in label and section.get("model_type") in SELF_CONTAINED_CONFIGS:
            raise ConfigError(
                f"The config's {label} is a block for one layer type, but models of type {section['model_type']!r} have one "
                "rotary table for all layers.",
                CORRECT_FILE,
            )
        rope_type = scaling_type(block)
        kind = BLOCK_TYPES.get(rope_type)
        if kind is None or _is_beside_layers(block):
            continue
        absent = [key for key in kind.needed if block.get(key) in (None, [])]
        if absent:
            raise MethodError(
                f"The config scales with {rope_type!r} but does not say {', '.join(absent)}.", CORRECT_FILE
            )
        null = [key for key in ("rope_theta", *kind.definite) if key in block and block[key] is None]
        if null:
            raise ConfigError(
                f"The config's {label}.{null[0]} is null, which transformers does not take for absent.",
                "Leave it out of config.json, or write its value.",
            )


def block_notes(section: Mapping[str, Any]) -> list[str]:
    """Returns notes on what the scaling blocks of a file say without effect, and on divisors that speed pairs up.

    Args:
        section: The config's text part, as it is stored.
    """
    labels: dict[str, list[str]] = {}
    fast: dict[str, str] = {}
    for label, block in _blocks(section):
        rope_type = scaling_type(block)
        keys = _unread(section, block, rope_type)
        if keys:  # both dialects of one block are one note
            labels.setdefault(f"{_where(block, rope_type)}: {_listed(keys, rope_type)}", []).append(label)
        for name in ("short_factor", "long_factor") if rope_type == "longrope" else ():
            divisors = [divisor for divisor in block.get(name) or () if divisor < SLOWEST_SPEEDUP]
            if divisors:
                fast[name] = (
                    f"{name} has {len(divisors)} divisor{'s' if len(divisors) > 1 else ''} below 1, the least {min(divisors):g}: "
                    "its pair turns faster than in training and passes the angles that it learnt."
                )
    return [*(f"{', '.join(places)}: keys without effect {text}." for text, places in labels.items()), *fast.values()]


def check_sections(block: Mapping[str, Any], geometry: RopeGeometry) -> None:
    """Checks that the axes of multimodal positions share out all pairs.

    Raises:
        ConfigError: If ``mrope_section`` does not sum to the number of pairs.
    """
    sections = block.get("mrope_section")
    if sections is None:
        return
    are_counts = all(int(part) == part >= 0 for part in sections)
    if not are_counts or sum(sections) != geometry.num_pairs:
        raise ConfigError(
            f"The config's mrope_section is {shown(list(sections))}, but this model rotates {geometry.num_pairs} pairs: the "
            "whole numbers of pairs for each axis have to sum to that.",
            CORRECT_FILE,
        )


def _blocks(section: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields every scaling block of a file with its place; keys beside blocks of layer types come as a block of their own."""
    for name in ("rope_scaling", "rope_parameters"):
        block = section.get(name) or {}
        inner = {key: value for key, value in block.items() if isinstance(value, Mapping)}
        if len(inner) < len(block):
            yield name, block
        yield from ((f"{name}.{shorten(key, _NAME_WIDTH)}", value) for key, value in inner.items())


def _is_beside_layers(block: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Mapping) for value in block.values())


def _unread(section: Mapping[str, Any], block: Mapping[str, Any], rope_type: str) -> list[str]:
    """Returns the keys of a block that have a value and no effect; none for a type that is not known."""
    said = [key for key, value in block.items() if value is not None and not isinstance(value, Mapping)]
    kind = BLOCK_TYPES.get(rope_type)
    if _is_beside_layers(block):
        return [key for key in said if key not in UNREAD_IN_LAYER_BLOCKS]
    if kind is None:
        return []
    family = family_of(section)
    known = {*kind.keys, *family.block_keys}
    if rope_type != "default" and section.get(LATENT_ATTENTION_KEY) is not None:
        known |= {"mscale", "mscale_all_dim"}  # its softmax scale reads them under every other type
    return [key for key in said if key not in known]


def _where(block: Mapping[str, Any], rope_type: str) -> str:
    """Returns under what the keys of a block have no effect."""
    if _is_beside_layers(block):
        return "beside the blocks of layer types"
    is_said = block.get("rope_type") or block.get("type")
    return f"under type {rope_type!r}" + ("" if is_said else ", which holds where none is given")


def _listed(keys: list[str], rope_type: str) -> str:
    """Returns unread keys for a message, misspelt ones with the key that may have been meant."""
    own = BLOCK_TYPES[rope_type].keys if rope_type in BLOCK_TYPES else ()
    every = {key for kind in BLOCK_TYPES.values() for key in kind.keys}
    words = []
    for key in keys[:_NAMED_KEYS]:
        near = [] if key in every else near_names(key, own) or near_names(key, sorted(every))
        words.append(shorten(key, _NAME_WIDTH) + (f" (did you mean {near[0]}?)" if near else ""))
    more = len(keys) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")
