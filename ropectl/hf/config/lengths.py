"""Reads the lengths that a config says: the trained one, and the context that it declares, under every name that files use.

Servers read further keys than ``max_position_embeddings``: vLLM 0.32 takes the least of all, and ``model_max_length``
before any of them (``model_arch_config_convertor.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.families import CHUNKED_POSITIONS, LENGTH_KEYS, name_of, named
from ropectl.hf.config.layers import layer_blocks
from ropectl.printable import shown
from ropectl.rope.methods.pi import PositionInterpolation
from ropectl.rope.proportional import common_block

#: Types whose formula reads the trained length from ``original_max_position_embeddings``.
TYPES_WITH_ORIGINAL_LENGTH = ("yarn", "llama3", "longrope")

#: Larger numbers stand for no limit.
_LONGEST = 2**31 - 1

_ORIGINAL = "original_max_position_embeddings"
_POSITIONS = "max_position_embeddings"


def max_positions(section: Mapping[str, Any]) -> int:
    """Returns ``max_position_embeddings``, which formulas read, under whichever name the family has for it [tokens].

    Raises:
        ConfigError: If it is not a whole number.
        UnsupportedModelError: If there is none.
    """
    positions = named(section, _POSITIONS)
    if positions is None:
        raise UnsupportedModelError(
            "The config has no max_position_embeddings: it is not a model with rotary positions."
        )
    if int(positions) != positions:
        raise ConfigError(f"{name_of(section, _POSITIONS)} = {positions} is not a whole number of tokens.")
    return int(positions)


def declared_length(section: Mapping[str, Any], rope_type: str) -> int:
    """Returns the context that a config declares: where nothing is scaled, the largest length that it names [tokens].

    The files of Command-R say ``max_position_embeddings`` 8192 and ``model_max_length`` 131072, and mean the latter.
    Under a scaling the formulas go by ``max_position_embeddings``.
    """
    positions = max_positions(section)
    return max(positions, *further_lengths(section).values(), 0) if rope_type == "default" else positions


def further_lengths(section: Mapping[str, Any]) -> dict[str, int]:
    """Returns the keys beside ``max_position_embeddings`` that servers take for the context, with their values [tokens]."""
    own = name_of(section, _POSITIONS)
    said = {key: section.get(key) for key in LENGTH_KEYS if key != own}
    return {key: value for key, value in said.items() if isinstance(value, int) and 1 < value <= _LONGEST}


def chunked_length(section: Mapping[str, Any]) -> int | None:
    """Returns the trained length of a model whose positions are counted in chunks past it; None for all others [tokens]."""
    chunks = section.get(CHUNKED_POSITIONS)
    if not chunks:
        return None
    if not isinstance(chunks, Mapping):
        raise ConfigError(f"The config's {CHUNKED_POSITIONS} is {shown(chunks)}, not an object with keys.")
    length = chunks.get(_ORIGINAL, chunks.get("chunk_size"))
    if not isinstance(length, int) or length < 2:
        raise ConfigError(
            f"The config's {CHUNKED_POSITIONS} does not say {_ORIGINAL}: the trained length is not known.",
            "Say it: --original-length N",
        )
    return length


def trained_length(
    section: Mapping[str, Any], block: Mapping[str, Any], rope_type: str, positions: int, warnings: list[str]
) -> int:
    """Returns the trained length that a config gives, adding to ``warnings`` how it was read [tokens].

    Args:
        section: The config's text part.
        block: The scaling block.
        rope_type: Its type.
        positions: ``max_position_embeddings`` [tokens].
        warnings: Gets sentences for the user.

    Raises:
        ConfigError: If the file scales without saying it.
    """
    outer, inner = section.get(_ORIGINAL), block.get(_ORIGINAL)
    if layer_blocks(section):
        outer = None  # read next to a single block only
    inner = chunked_length(section) if inner is None else inner
    if rope_type in TYPES_WITH_ORIGINAL_LENGTH:
        given = outer if outer is not None else inner  # the top-level key wins in transformers
        if given is None:
            raise ConfigError(
                f"The config scales with {rope_type!r} but does not say the trained length: "
                f"max_position_embeddings = {positions} may be that or the extended one.",
                "Say it: --original-length N",
            )
        return int(given)
    if common_block({**block, "rope_type": rope_type})["rope_type"] == "linear" and inner is None:
        return _linear_length(section, block, positions, warnings)
    if rope_type == "dynamic" and inner is not None and inner != positions:
        warnings.append(
            f"Dynamic scaling starts at max_position_embeddings = {positions}; the original length of {inner} in the "
            f"config is read by no runtime. If {inner} is the trained length, this checkpoint is not scaled up to {positions}."
        )
        return positions
    return int(inner) if inner is not None else declared_length(section, rope_type)


def _linear_length(section: Mapping[str, Any], block: Mapping[str, Any], positions: int, warnings: list[str]) -> int:
    """Returns the trained length of a linear scaling that does not say it."""
    factor = PositionInterpolation.create({"factor": block.get("factor")}).factor
    if round(positions * factor) in further_lengths(section).values():
        return positions  # the file names the extended length as well
    length = round(positions / factor)
    warnings.append(
        f"Linear scaling by {factor:g} without the trained length: taken as max_position_embeddings / factor = "
        f"{length}. If {positions} is the trained length, say --original-length {positions}."
    )
    return length


def length_notes(section: Mapping[str, Any], rope_type: str, length: int, is_asked: bool = False) -> list[str]:
    """Returns notes on lengths that a file names beside ``max_position_embeddings``, and on how they were read.

    Args:
        section: The config's text part.
        rope_type: The type of scaling in force.
        length: The trained length [tokens].
        is_asked: Whether the user gives it, so that there is nothing to say of how it was read.
    """
    positions, notes = max_positions(section), []
    for key, value in () if is_asked else further_lengths(section).items():
        if value == positions:
            continue
        said = f"{key} = {value} beside max_position_embeddings = {positions}"
        if rope_type == "default" and length == value:
            notes.append(
                f"{said}: {value} is taken for the trained length. If that is {positions}: --original-length {positions}"
            )
        elif value < positions:
            notes.append(f"{said}: servers that read it offer {value} tokens only.")
        elif length != positions or rope_type != "linear":
            notes.append(f"{said}: servers that read it offer {value} tokens, whatever the scaling makes of them.")
    if section.get(CHUNKED_POSITIONS):
        notes.append(
            f"{CHUNKED_POSITIONS} counts positions in chunks, so that {positions} tokens keep to the {length} of training. "
            "transformers and llama.cpp do not read it: past that length they compute rotations that training never saw. A "
            f"patch starts from {length} tokens and leaves it out."
        )
    return notes
