"""Deals out the kinds of training samples in exact shares."""

from __future__ import annotations

import random
from functools import lru_cache

from ropectl.errors import ConfigError

#: Samples in which every kind has its exact share.
CYCLE = 100

TEXT, SHORT, PASSKEY = "text", "short", "passkey"


def kind_counts(short_fraction: float, passkey_fraction: float) -> dict[str, int]:
    """Returns how many samples of each kind are in a cycle.

    Args:
        short_fraction: Share of short samples, in whole hundredths.
        passkey_fraction: Share of passkey samples, in whole hundredths.

    Raises:
        ConfigError: If a share is not in whole hundredths, or both are more than 1 together.
    """
    counts = {}
    for name, kind, fraction in (
        ("short-fraction", SHORT, short_fraction),
        ("passkey-fraction", PASSKEY, passkey_fraction),
    ):
        counts[kind] = round(fraction * CYCLE)
        if abs(fraction * CYCLE - counts[kind]) > 1e-6:
            raise ConfigError(
                f"{name} = {fraction} is not possible: allowed are 0 to 1 in steps of {1 / CYCLE}.",
                f"Type for example: --{name} {min(max(counts[kind], 1), CYCLE) / CYCLE}",
            )
    counts[TEXT] = CYCLE - counts[SHORT] - counts[PASSKEY]
    if counts[TEXT] < 0:
        raise ConfigError(
            f"short-fraction = {short_fraction} and passkey-fraction = {passkey_fraction} are more than 1 together."
        )
    return counts


@lru_cache(maxsize=4)
def cycle_kinds(seed: int, cycle: int, counts: tuple[tuple[str, int], ...]) -> list[str]:
    """Returns the kinds of the samples of a cycle, in their order, ``(CYCLE,)``."""
    kinds = [kind for kind, number in counts for _ in range(number)]
    random.Random(f"ropectl-kinds:{seed}:{cycle}").shuffle(kinds)
    return kinds
