"""Drawings in characters: bars and curves, and their replacements where only ASCII can be written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

#: Characters of a whole bar.
BAR_WIDTH = 8

#: A curve shows so many lengths at most; if there are more, some of them, evenly chosen.
MAX_CURVE = 24

#: The scale of curves spans at least and at most these factors: noise does not look like a rise, and one failure does not
#: flatten the other curves.
MIN_SPAN, MAX_SPAN = 2.0, 16.0

EMPTY = "\u00b7"
OPEN = "░"
_LEVELS = "▁▂▃▄▅▆▇█"
_EIGHTHS = "▏▎▍▌▋▊▉█"

#: The same drawings in ASCII.
ASCII = str.maketrans("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉─░\u00b7", "_.-=+x%#:::||||-?.")


def bar(share: float, possible: float | None = None, width: int = BAR_WIDTH) -> str:
    """Returns a bar; what is not resolved is shaded, the rest of the whole is dotted.

    Args:
        share: In [0, 1]; values outside are drawn as the nearer end.
        possible: How long it may be; None for no longer.
        width: Characters of the whole.
    """
    eighths = round(8 * width * min(max(share, 0.0), 1.0)) if not math.isnan(share) else 0
    whole, rest = divmod(eighths, 8)
    text = "█" * whole + (_EIGHTHS[rest - 1] if rest else "")
    shaded = max(0, round(width * min(possible or 0.0, 1.0)) - len(text))
    return text + OPEN * shaded + EMPTY * (width - len(text) - shaded)


def curve_scale(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Returns the ends of the scale that all curves share; None if there is nothing to draw.

    Args:
        values: All values of all curves, positive; None or not finite where there is none.
    """
    known = [value for value in values if value is not None and math.isfinite(value) and value > 0]
    if not known:
        return None
    least = min(known)
    return least, min(max(max(known), least * MIN_SPAN), least * MAX_SPAN)


def curve(values: Sequence[float | None], scale: tuple[float, float]) -> str:
    """Returns one character for each value, higher blocks for larger ones on a log scale; dots where a value is missing."""
    return "".join(_level(value, *scale) for value in values)


def _level(value: float | None, least: float, most: float) -> str:
    if value is None or math.isnan(value) or value <= 0:
        return EMPTY
    share = 1.0 if value >= most else math.log(value / least) / math.log(most / least)
    return _LEVELS[round((len(_LEVELS) - 1) * max(share, 0.0))]


def chosen(count: int, most: int = MAX_CURVE) -> list[int]:
    """Returns the indexes of at most ``most`` of ``count`` things, evenly spaced, including the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)})
