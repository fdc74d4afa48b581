"""The colours of heat maps: from dark blue to yellow, which all eyes tell apart and which stay ordered in grey."""

from __future__ import annotations

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style

#: Red, green and blue at equal steps of the scale, in [0, 255].
_SCALE = ((20, 35, 82), (67, 78, 108), (124, 123, 120), (186, 173, 110), (253, 231, 76))

_DARK, _BRIGHT = ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)


def shade_style(share: float) -> Style:
    """Returns a background, and writing that stands out from it.

    Args:
        share: Position on the scale, in [0, 1].
    """
    place = min(max(share, 0.0), 1.0) * (len(_SCALE) - 1) if share == share else 0.0
    low = min(int(place), len(_SCALE) - 2)
    red, green, blue = (round(a + (b - a) * (place - low)) for a, b in zip(_SCALE[low], _SCALE[low + 1], strict=True))
    is_bright = 0.299 * red + 0.587 * green + 0.114 * blue > 115
    return Style(
        color=Color.from_triplet(_DARK if is_bright else _BRIGHT),
        bgcolor=Color.from_triplet(ColorTriplet(red, green, blue)),
    )
