"""Drawings in characters: bars and curves, and what stands for them where only ASCII can be written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

#: Characters of a whole bar.
BAR_WIDTH = 8

#: Lengths that a curve shows; of more, evenly chosen ones.
MAX_CURVE = 24

#: A curve's scale spans at least and at most these factors: noise is no mountain, and one failure flattens nobody else.
MIN_SPAN, MAX_SPAN = 2.0, 16.0

EMPTY = "\u00b7"
_LEVELS = "▁▂▃▄▅▆▇█"
_EIGHTHS = "▏▎▍▌▋▊▉█"

#: The same drawings in ASCII.
ASCII = str.maketrans("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉─\u00b7", "_.-=+x%#:::||||-.")


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """Returns a bar; what it lacks of the whole is dotted.

    Args:
        share: In [0, 1]; what is outside is drawn at the end it is beyond.
        width: Characters of the whole.
    """
    eighths = round(8 * width * min(max(share, 0.0), 1.0)) if not math.isnan(share) else 0
    whole, rest = divmod(eighths, 8)
    text = "█" * whole + (_EIGHTHS[rest - 1] if rest else "")
    return text + EMPTY * (width - len(text))


def curve_scale(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Returns the ends of the scale that all curves share; None where there is nothing to draw.

    Args:
        values: All values of all curves, positive; None or not finite where there is none.
    """
    known = [value for value in values if value is not None and math.isfinite(value) and value > 0]
    if not known:
        return None
    least = min(known)
    return least, min(max(max(known), least * MIN_SPAN), least * MAX_SPAN)


def curve(values: Sequence[float | None], scale: tuple[float, float]) -> str:
    """Returns a character a value, higher blocks for larger ones on a log scale; dots where there is none."""
    return "".join(_level(value, *scale) for value in values)


def _level(value: float | None, least: float, most: float) -> str:
    if value is None or math.isnan(value) or value <= 0:
        return EMPTY
    share = 1.0 if value >= most else math.log(value / least) / math.log(most / least)
    return _LEVELS[round((len(_LEVELS) - 1) * max(share, 0.0))]


def curve_ends() -> tuple[str, str]:
    """Returns the characters of the least and the largest value."""
    return _LEVELS[0], _LEVELS[-1]


def chosen(count: int, most: int = MAX_CURVE) -> list[int]:
    """Returns the indexes of at most so many of ``count`` things, evenly, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)})
