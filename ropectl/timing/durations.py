"""Durations as people write and read them: ``90s``, ``10m``, ``2h``, ``1h30m``; ``8 to 12 min``."""

from __future__ import annotations

import re

from ropectl.errors import ConfigError
from ropectl.printable import shown
from ropectl.timing.speed import Span

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = r"([0-9]+(?:\.[0-9]+)?)([smhd])"
_DURATION = re.compile(f"(?:{_PART})+")

#: Longer than this is a typing error [s].
_LONGEST = 366 * 86_400.0


def parse_duration(text: str, name: str) -> float:
    """Returns a duration in seconds.

    Args:
        text: Numbers, each with a unit: s, m, h or d.
        name: The option, for messages.

    Raises:
        ConfigError: If it is no duration, none at all, or longer than a year.
    """
    written = text.strip().lower()
    parts = re.findall(_PART, written) if _DURATION.fullmatch(written) else []
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds <= _LONGEST:
        raise ConfigError(
            f"{name} {shown(text)} is not a duration (a number and its unit s, m, h or d; more than none, at most a year).",
            f"Type for example: {name} 90s, {name} 10m, {name} 2h or {name} 1h30m",
        )
    return seconds


def duration(seconds: float) -> str:
    """Returns a duration: ``0.4 s``, ``50 s``, ``12 min``, ``3 h 05 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min"


def duration_range(span: Span) -> str:
    """Returns a range of durations, to two digits: ``1.8 to 2.3 min``, ``50 s to 2.4 min``; one where both read alike."""
    (low, low_unit), (high, high_unit) = _rough(span.low), _rough(span.high)
    if (low, low_unit) == (high, high_unit):
        return f"about {high} {high_unit}"
    return f"{low} to {high} {high_unit}" if low_unit == high_unit else f"{low} {low_unit} to {high} {high_unit}"


def _rough(seconds: float) -> tuple[str, str]:
    """Returns a number of two digits, or of whole units from 100 on, and its unit."""
    unit = next(unit for unit in ("h", "m", "s") if seconds >= _UNITS[unit] or unit == "s")
    number = seconds / _UNITS[unit]
    return f"{number:,.0f}" if number >= 99.5 else f"{number:.2g}", "min" if unit == "m" else unit
