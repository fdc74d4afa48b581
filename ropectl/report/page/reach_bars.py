"""How far a method reaches, as bars against a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.blocks import Bar, Bars

#: Why a length is the target.
ASKED, LONGEST, MADE_FOR = "that were asked for", "that were the most measured", "that the method is made for"

MEANINGS = {
    "computes": "Positions whose slow rotations were all seen in training. A formula, not a measurement.",
    "models": "Text is predicted no worse than by the unscaled model at its trained length, at every measured length from there up to this.",
    "uses": "Passkeys are retrieved at every measured length from the trained one up to this.",
}


def reach_bars(reach: Mapping[str, Any], target: int, trained: int, is_short: bool = False, aim: str = ASKED) -> Bars:
    """Returns the three lengths against the target; one that has no limit fills it.

    Args:
        reach: ``computes``, ``models`` and ``uses`` [tokens], with how long the latter may be; those that are missing are left out.
        target: The context that was asked for [tokens].
        trained: L [tokens].
        is_short: Whether the page explains them elsewhere.
        aim: Why this is the target.
    """
    bars = []
    for sense, meaning in MEANINGS.items():
        if sense not in reach:
            continue
        length = reach[sense]
        unlimited = sense == "computes" and length is None
        text = "unlimited" if unlimited else f"{length:,}" if length else "none" if length == 0 else "not judged"
        possible = reach.get(f"{sense}_possible")
        if length is not None and possible is not None and possible > length:
            text = f"{text}, perhaps {possible:,}"
        share = 1.0 if unlimited else None if length is None else max(0.0, min(1.0, length / target))
        may = None if possible is None else min(1.0, possible / target)
        bars.append(Bar(sense, text, share, meaning, may))
    return Bars(bars, f"{target:,} tokens", min(1.0, trained / target), f"{trained:,}", is_short, aim)
