"""Lengths in tokens as people write them: ``4096``, ``8k``, ``2048,4096``, ``1k..32k``, ``1k..16k/1k``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ropectl.errors import ConfigError
from ropectl.printable import shorten, shown
from ropectl.slips import factor_of

_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKmM]?)")
_UNITS = {"": 1, "k": 1024, "m": 1024 * 1024}
_EXAMPLE = "Type for example: --{0} 8k"
_EXAMPLES = "Type for example: --{0} 8k, --{0} 2048,4096, --{0} 1k..32k (doublings) or --{0} 1k..16k/1k (steps)."

#: Positions are numbers of 31 bits, in configs and in kernels [tokens].
MAX_LENGTH = 2**31 - 1

#: More lengths than this are a typing error.
MAX_LENGTHS = 1000

#: Of more lengths than this, a sentence says their number and their ends.
MOST_NAMED = 4


def parse_length(text: str, name: str = "length", example: str = _EXAMPLE) -> int:
    """Returns a single length in tokens; k is 1024.

    Args:
        text: The length as a person wrote it.
        name: The name of the setting, for messages; with ``--`` where it is an option only.
        example: A suggestion what to type instead, with ``{0}`` for the name.

    Raises:
        ConfigError: If it is not a whole number of tokens, at least 2 and at most :data:`MAX_LENGTH`.
    """
    match = _LENGTH.fullmatch(text.strip(" "))
    value = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    if value > MAX_LENGTH:
        raise ConfigError(
            f"{name} = {shorten(text)} is not possible: at most {MAX_LENGTH} tokens have a position.",
            example.format(name.removeprefix("--")),
        )
    if not match or value != int(value) or value < 2:
        said = f"{name} {shown(text)}" if name.startswith("--") else f"{name} = {shown(text)}"
        factor = factor_of(text) if name == "target-length" else None
        raise ConfigError(
            f"{said} is not a number of tokens (a whole number, at least 2).",
            f"Did you mean --factor {factor}?" if factor else example.format(name.removeprefix("--")),
        )
    return int(value)


def parse_lengths(texts: Iterable[str], name: str = "length") -> list[int]:
    """Returns all lengths named, ascending, each once; arguments as for :func:`parse_length`.

    Raises:
        ConfigError: If one of them is malformed.
    """
    lengths: set[int] = set()
    for text in texts:
        parts = [part.strip() for part in text.split(",")]
        kept = ",".join(filter(None, parts))
        if kept and not all(parts):
            raise ConfigError(
                f"{name} = {shown(text)} has an empty part: a comma too many.", f"Type: --{name} {shorten(kept)}"
            )
        for part in parts:
            lengths.update(_expand(part, name))
    return sorted(lengths)


def _expand(part: str, name: str) -> list[int]:
    if ".." not in part:
        return [parse_length(part, name, _EXAMPLES)]
    start_text, _, rest = part.partition("..")
    end_text, _, step_text = rest.partition("/")
    start, end = (parse_length(each, name, _EXAMPLES) for each in (start_text, end_text))
    if start > end:
        raise ConfigError(f"{name} range {shown(part)} runs backwards.", _EXAMPLES.format(name))
    result = [start]
    step = parse_length(step_text, name, _EXAMPLES) if step_text else None
    while (following := result[-1] + step if step else result[-1] * 2) <= end:
        result.append(following)
        if len(result) > MAX_LENGTHS:
            raise ConfigError(f"{name} range {shown(part)} has more than {MAX_LENGTHS} values.", _EXAMPLES.format(name))
    return result


def lengths_text(lengths: Iterable[int]) -> str:
    """Returns lengths in words: ``512``, ``256 and 512``; of many their number and ends, ``7 lengths from 256 to 16384``.

    Args:
        lengths: At least one, in any order [tokens].
    """
    names = [str(length) for length in sorted(set(lengths))]
    if len(names) > MOST_NAMED:
        return f"{len(names)} lengths from {names[0]} to {names[-1]}"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def format_length(length: int) -> str:
    """Returns a length as people write it: multiples of 1024 as ``8k``, anything else in full."""
    return f"{length // 1024}k" if length >= 1024 and length % 1024 == 0 else str(length)
