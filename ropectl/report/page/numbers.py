"""Numbers as a page writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ropectl.lengths import format_length
from ropectl.records import NO_CHANGE
from ropectl.report.page.blocks import Bar, Bars, Cell
from ropectl.report.tables import perplexity_text

NOTHING = "\u2013"

#: Relative changes of perplexity above this are a price worth a colour.
VISIBLE_CHANGE = 0.005

#: What the mark behind a number means.
BEYOND = "* past the length that the method is made for"

MINUS = "\u2212"

#: Why a length is what others are drawn against.
ASKED, LONGEST, MADE_FOR = "that were asked for", "that were the most measured", "that the method is made for"

MEANINGS = {
    "computes": "Positions whose slow rotations were all seen in training. A formula, not a measurement.",
    "models": "Text is predicted no worse than by the unscaled model at its trained length. Measured.",
    "uses": "Passkeys are retrieved at every length from the trained one up to this. Measured.",
}


def tokens(length: int | None, nothing: str = "not judged") -> str:
    """Returns a length with its unit; 0 is none of those that were tried."""
    if length is None:
        return nothing
    return f"{length:,} tokens" if length else "no evaluated length"


def percent(value: float | None, digits: int = 0) -> str:
    """Returns a share in per cent."""
    return NOTHING if value is None else f"{100 * value:.{digits}f}\u2009%"


def signed_percent(value: float | None) -> str:
    """Returns a relative change with its sign; rounding between passes has none."""
    if value is None:
        return NOTHING
    if abs(value) < NO_CHANGE:
        return "\u00b10.0\u2009%"
    return f"{value:+.1%}".replace("-", MINUS).replace("%", "\u2009%")


def signed(value: float) -> str:
    """Returns a difference of losses with its sign."""
    return f"{value + 0.0:+.4f}".replace("-", MINUS)


def change_mark(value: float | None) -> str:
    """Returns how a relative change of perplexity is coloured."""
    if value is None or abs(value) <= VISIBLE_CHANGE:
        return ""
    return "worse" if value > 0 else "better"


def interval(low: float | None, high: float | None) -> str:
    """Returns a 95 % interval of perplexities."""
    return NOTHING if low is None or high is None else f"{perplexity_text(low)} to {perplexity_text(high)}"


def share_interval(entry: Mapping[str, Any]) -> str:
    """Returns a 95 % interval of shares."""
    return f"{100 * entry['ci_low']:.0f}\u2013{100 * entry['ci_high']:.0f}\u2009%"


def length_head(length: int, trained: int) -> str:
    """Returns the head of a length's column; the trained length is marked."""
    return f"{format_length(length)} (L)" if length == trained else format_length(length)


def number_cell(value: float | None, text: str, mark: str = "", small: str = "", small_mark: str = "") -> Cell:
    """Returns a cell that is sorted by its value."""
    return Cell(text, mark, small, value, small_mark)


def at(entries: Iterable[Mapping[str, Any]], length: int, key: str) -> Mapping[str, Any] | None:
    """Returns the entry of a length."""
    return next((entry for entry in entries if entry[key] == length), None)


def reach_bars(
    reach: Mapping[str, int | None], target: int, trained: int, is_short: bool = False, aim: str = ASKED
) -> Bars:
    """Returns the three lengths against the target; one that has no limit fills it.

    Args:
        reach: ``computes``, ``models`` and ``uses``; those that it lacks are left out.
        target: The context that was asked for [tokens].
        trained: L [tokens].
        is_short: Whether what they mean is said elsewhere.
        aim: Why the target is one.
    """
    bars = []
    for sense, meaning in MEANINGS.items():
        if sense not in reach:
            continue
        length = reach[sense]
        unlimited = sense == "computes" and length is None
        text = "unlimited" if unlimited else f"{length:,}" if length else "none" if length == 0 else "not judged"
        share = 1.0 if unlimited else None if length is None else max(0.0, min(1.0, length / target))
        bars.append(Bar(sense, text, share, meaning))
    return Bars(bars, f"{target:,} tokens", min(1.0, trained / target), f"{trained:,}", is_short, aim)
