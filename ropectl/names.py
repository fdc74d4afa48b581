"""Names that people type: suggestions for an unknown one, in the same words everywhere."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from ropectl.errors import ConfigError
from ropectl.printable import shorten, shown

#: Similarity from which a name counts as near (``difflib`` ratio).
NEAR = 0.6

#: Largest difference in similarity to the nearest name with which another one is suggested too.
AS_NEAR = 0.15


def near_names(name: str, known: Iterable[str], similarity: float = NEAR) -> list[str]:
    """Returns at most three known names that may have been meant, the nearest first, ignoring case.

    From three letters on, the beginning of a known name is near.

    Args:
        name: The name as it was typed.
        known: The names there are.
        similarity: The least ``difflib`` ratio of a near name.
    """
    by_folded = {entry.casefold(): entry for entry in known}
    wanted = name.casefold()
    starts = [folded for folded in by_folded if len(wanted) > 2 and folded.startswith(wanted)]
    near = difflib.get_close_matches(wanted, by_folded, n=3, cutoff=similarity)
    likeness = {folded: difflib.SequenceMatcher(None, folded, wanted).ratio() for folded in near}
    near = [folded for folded in near if likeness[folded] >= likeness[near[0]] - AS_NEAR]
    return [by_folded[folded] for folded in dict.fromkeys([*starts, *near])][:3]


def name_hint(name: str, known: Iterable[str]) -> str:
    """Returns a hint for an unknown name: the nearest known ones, else all."""
    known = list(known)
    near = near_names(name, known)
    return f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."


def shown_names(names: Sequence[str], most: int = 3) -> str:
    """Returns names for a message: the first few, each cut where it is long, and how many there are besides."""
    first = ", ".join(shorten(name) for name in names[:most])
    return f"{first} and {len(names) - most} more" if len(names) > most else first


def unknown_choice(setting: str, value: object, allowed: Iterable[str]) -> ConfigError:
    """Returns the error for a setting that is not one of its allowed words: the value, what is allowed, the nearest.

    Args:
        setting: Its name, written with ``-``.
        value: The value as it was given.
        allowed: All allowed words.
    """
    allowed = list(allowed)
    near = near_names(str(value), allowed)
    hint = f"Did you mean {' or '.join(near)}?" if near else ""
    return ConfigError(f"{setting} = {shown(value)} is not possible: allowed are {', '.join(allowed)}.", hint)
