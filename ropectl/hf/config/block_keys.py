"""Interprets keys of a scaling block that do not mean the same everywhere, and warns where runtimes disagree."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.hf.config.dialects import scaling_block, scaling_type
from ropectl.hf.config.families import LATENT_ATTENTION_KEY, UNREAD_IN_LAYER_BLOCKS, family_of
from ropectl.hf.config.layers import layer_blocks
from ropectl.hf.config.lengths import TYPES_WITH_ORIGINAL_LENGTH
from ropectl.printable import shorten
from ropectl.rope.frequencies import yarn_attention_factor
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.methods.ntk import ntk_base

#: Relative difference between two spellings of one attention factor that is only rounding.
_SAME = 1e-6

_ORIGINAL = "original_max_position_embeddings"

#: Keys without which a file silently gets the defaults of its class, or no scaling.
_DECISIVE = ("rope_scaling", "rope_parameters", "rope_theta")

#: Similarity (``difflib`` ratio) from which a key counts as one of these, misspelt: families have keys that are like them.
_MISSPELT = 0.88


def family_parameters(section: Mapping[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Returns a scaling block in common terms, where the family gives its keys a meaning of its own.

    Args:
        section: The config's text part.
        parameters: The block, with ``rope_type``, ``rope_theta`` and ``factor`` filled in.

    Raises:
        UnsupportedModelError: If no method computes what the family does.
    """
    family, result = family_of(section), dict(parameters)
    if layer_blocks(section):
        result = {key: value for key, value in result.items() if key not in UNREAD_IN_LAYER_BLOCKS}
    if result["rope_type"] == "default":
        return result
    if family.static_longrope and result["rope_type"] == "longrope":
        result["long_factor"] = result["short_factor"]
    if family.attention_keys:
        factors = {result.get(key) for key in family.attention_keys}
        if len(factors) != 1 or None in factors:
            raise UnsupportedModelError(
                f"The config says {' and '.join(f'{key} = {result.get(key)}' for key in family.attention_keys)}: one "
                "attention factor for every length is needed, given by both."
            )
        result["attention_factor"] = factors.pop()
    return result


def trained_base(section: Mapping[str, Any], block: Mapping[str, Any], geometry: RopeGeometry) -> float | None:
    """Returns the base that a ``dynamic`` block with a fixed ``alpha`` means; None for all other blocks.

    HunYuan's models were trained with it, so it is not a scaling but the base itself: b * alpha^(d/(d-2)).
    """
    alpha = block.get("alpha")
    is_dynamic = block.get("rope_type", block.get("type")) == "dynamic"
    return ntk_base(geometry, alpha) if alpha and is_dynamic and family_of(section).alpha_is_ntk else None


_SHORT_LIST_ONLY = (
    "transformers 5 takes the short_factor of this model type at every length, as it is shown here; past the trained length the "
    "file means long_factor, which transformers 4.48 to 4.57 take."
)


def block_warnings(
    section: Mapping[str, Any], parameters: Mapping[str, Any], max_positions: int, length: int
) -> list[str]:
    """Returns warnings about a ``yarn`` or ``longrope`` block that runtimes read differently.

    Args:
        section: The config's text part.
        parameters: The block, with ``rope_type`` and ``factor`` filled in.
        max_positions: The context the config declares [tokens].
        length: The trained length [tokens].
    """
    if parameters["rope_type"] == "longrope" and family_of(section).static_longrope:
        differ = list(parameters["short_factor"]) != list(parameters["long_factor"])
        return [_SHORT_LIST_ONLY] if differ else []
    if parameters["rope_type"] != "yarn":
        return []
    factor, warnings = parameters["factor"], []
    declared = round(factor * length)
    if declared != max_positions:
        warnings.append(
            f"YaRN by {factor:g} over {length} tokens makes {declared}, but max_position_embeddings is {max_positions} "
            f"({max_positions / length:g} times as long): some runtimes go by the factor ({factor:g}, as here), others by the ratio."
        )
    lone = [key for key in ("mscale", "mscale_all_dim") if parameters.get(key) is not None]
    if len(lone) == 1 and section.get(LATENT_ATTENTION_KEY) is None:
        other = "mscale" if lone[0] == "mscale_all_dim" else "mscale_all_dim"
        warnings.append(f"{lone[0]} = {parameters[lone[0]]:g} has no effect without {other}.")
    formula = yarn_attention_factor(factor)
    multiplier, absolute = parameters.get("attn_factor"), parameters.get("attention_factor")
    net = formula if multiplier is None else multiplier * formula
    if multiplier is not None and (absolute is None or abs(net - absolute) > _SAME * absolute):
        warnings.append(
            f"attn_factor = {multiplier:g} is a multiplier to some runtimes, which then compute an attention factor of "
            f"{net:.4f}, and ignored by transformers, which computes {absolute or formula:.4f} (as here). Say which is meant: "
            "write attention_factor, the final value."
        )
    return warnings


def outer_notes(section: Mapping[str, Any], knows_length: bool = False) -> list[str]:
    """Returns notes on keys next to the scaling block that have no effect: misspelt ones, and a second trained length.

    Args:
        section: The config's text part, as it is stored.
        knows_length: Whether the user gives the trained length.
    """
    notes = []
    absent = [key for key in _DECISIVE if section.get(key) is None]
    for key, value in section.items():
        meant = (
            difflib.get_close_matches(key, absent, 1, _MISSPELT) if value is not None and key not in _DECISIVE else []
        )
        notes += [f"{shorten(key, 40)} is not read: did you mean {name}?" for name in meant]
    outer, has_layers = section.get(_ORIGINAL), bool(layer_blocks(section))
    if outer is None or knows_length:
        return notes
    block = {} if has_layers else scaling_block(section)
    inner, rope_type = block.get(_ORIGINAL), scaling_type(block)
    if rope_type in TYPES_WITH_ORIGINAL_LENGTH:
        if inner not in (None, outer):
            notes.append(
                f"{_ORIGINAL} is given twice: {outer} next to the scaling block (read) and {inner} in it (not read)."
            )
    elif outer not in (inner, section.get("max_position_embeddings")):
        where = "the blocks of layer types" if has_layers else f"a scaling block of type {rope_type!r}"
        notes.append(
            f"{_ORIGINAL} = {outer} next to {where} is not read. If it is the trained length: --original-length {outer}"
        )
    return notes
