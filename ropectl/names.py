"""Names that people type: what somebody may have meant by an unknown one, said in one way everywhere."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ropectl.errors import ConfigError

#: Share of common letters from which a name counts as near (``difflib`` ratio).
NEAR = 0.6

#: How much less near than the nearest a name may be and still be worth naming.
AS_NEAR = 0.15


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Returns at most three known names that somebody may have meant, the nearest first, letter case aside.

    A name that is the beginning of a known one, or goes on after it, is near whatever its length.
    """
    by_folded = {entry.casefold(): entry for entry in known}
    wanted = name.casefold()
    starts = [folded for folded in by_folded if len(wanted) > 2 and folded.startswith(wanted)]
    near = difflib.get_close_matches(wanted, by_folded, n=3, cutoff=NEAR)
    likeness = {folded: difflib.SequenceMatcher(None, folded, wanted).ratio() for folded in near}
    near = [folded for folded in near if likeness[folded] >= likeness[near[0]] - AS_NEAR]
    return [by_folded[folded] for folded in dict.fromkeys([*starts, *near])][:3]


def name_hint(name: str, known: Iterable[str]) -> str:
    """Returns what somebody may have meant by an unknown name: the nearest known ones, else all."""
    known = list(known)
    near = near_names(name, known)
    return f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."


def unknown_choice(setting: str, value: object, allowed: Iterable[str]) -> ConfigError:
    """Returns the error for a setting that is none of its allowed words: value, what is allowed, the nearest.

    Args:
        setting: Its name, ``-`` in it.
        value: As it was given.
        allowed: All that it may be.
    """
    allowed = list(allowed)
    near = near_names(str(value), allowed)
    hint = f"Did you mean {' or '.join(near)}?" if near else ""
    return ConfigError(f"{setting} = {value!r} is not possible: allowed are {', '.join(allowed)}.", hint)
