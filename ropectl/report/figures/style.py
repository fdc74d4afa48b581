"""The look of all figures: curves that differ in colour, in grey and for the colour-blind, and names that fit."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

from ropectl.rope.geometry import describe_rotary_dim
from ropectl.rope.method import short_spec

#: Okabe and Ito's palette for all kinds of colour vision, without its yellow, which is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1.2, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")

REFERENCE_COLOUR = "#8a8a8a"
TRAINED_COLOUR = "#e4eef7"

#: A perceptually uniform map with the same order in grey and for the colour-blind.
HEAT_COLOURS = "cividis"

#: How cells look that were not measured, which is not the same as 0.
NOT_MEASURED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#9a9a9a", "hatch": "//////", "linewidth": 0.0}

#: A longer label is cut in the middle, where specs differ least.
MAX_LABEL = 38

#: Markers along a curve.
_NUM_MARKERS = 8


_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "text.usetex": False,
    "svg.hashsalt": "ropectl",
    # Text stays text: it can be searched, copied, read aloud and set in a font that has a name's script.
    # Layout is computed with DejaVu Sans, which is wider than the fonts that browsers use instead.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # TrueType: text is text there too, and publishers refuse the default
    "hatch.linewidth": 0.5,
}

#: Size of ticks and legends as part of the font size.
SMALL = 0.93


class Size(Enum):
    """The width of a figure [inch], the size of its text [points], and the greatest width of a name in its legend [inch]."""

    COLUMN = 3.3, 7.0, 2.75
    PAGE = 6.8, 9.0, 2.1

    def __init__(self, width: float, font: float, label: float) -> None:
        self.width, self.font, self.label = width, font, label

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of matplotlib for this size."""
        scale = self.font / 7.0
        return {
            "font.size": self.font,
            **dict.fromkeys(("axes.titlesize", "axes.labelsize"), self.font),
            **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), self.font * SMALL),
            "legend.title_fontsize": self.font * SMALL,
            **dict.fromkeys(
                ("axes.linewidth", "xtick.major.width", "ytick.major.width", "grid.linewidth"), 0.5 * scale
            ),
            **dict.fromkeys(("xtick.major.size", "ytick.major.size", "axes.titlepad"), 2.5 * scale),
            "axes.labelpad": 2.0 * scale,
            "figure.constrained_layout.h_pad": 0.03,
            "figure.constrained_layout.w_pad": 0.03,
        }


@contextmanager
def house_style(size: Size | None = None) -> Iterator[None]:
    """Draws with our settings only: neither a user's matplotlibrc nor an earlier figure changes anything.

    Args:
        size: Size of a figure of a record; None for the large ones of ``inspect``.
    """
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # Names may be in any script: a bitmap shows boxes for what its font lacks, an SVG the name.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        if size:
            settings: Any = size.settings
            matplotlib.rcParams.update(settings)
        yield


@dataclass(frozen=True)
class Look:
    """The colour, dashes and marker of one subject in every figure of a record."""

    color: str
    linestyle: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """The arguments that draw its line."""
        return {"color": self.color, "linestyle": self.linestyle, "linewidth": 1.2}


def looks(subjects: Sequence[tuple[Hashable, bool, bool]]) -> list[Look]:
    """Returns how each subject is drawn.

    Subjects of a family share colour and marker. Where some were trained, the trained ones are solid and
    the others dashed; else dashes differ from family to family. The unscaled model is grey.

    Args:
        subjects: Family, whether it was trained, whether it is the unscaled model.
    """
    any_tuned = any(tuned for _, tuned, _ in subjects)
    reference = next((family for family, _, is_reference in subjects if is_reference), None)
    order = {family: None for family, _, _ in subjects if family != reference}
    place = {family: index for index, family in enumerate(order)}
    result = []
    for family, tuned, _ in subjects:
        index = place.get(family, 0)
        dashes = DASHES[0 if tuned else 1] if any_tuned else DASHES[index % len(DASHES)]
        if family == reference and not any_tuned:
            dashes = DASHES[0]
        colour = REFERENCE_COLOUR if family == reference else COLOURS[index % len(COLOURS)]
        marker = "." if family == reference else MARKERS[index % len(MARKERS)]
        result.append(Look(colour, dashes, marker))
    return result


def curve_style(index: int, count: int, num_points: int) -> dict[str, Any]:
    """Returns how to draw curve ``index`` of ``count``: no two of the first 28 share colour and dashes.

    Later curves are thinner, and markers are staggered, so that curves on top of each other can all be seen.
    """
    every = max(1, num_points // _NUM_MARKERS)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 3.0 - 1.6 * index / max(1, count - 1),
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 5.0,
        "markevery": (index * every // max(1, count), every),
    }


def shorten(text: str, width: int = MAX_LABEL) -> str:
    """Returns ``text`` with ``?`` for what cannot be printed, and without its middle if it is longer than ``width``."""
    text = "".join(character if character.isprintable() else "?" for character in text)
    if len(text) <= width:
        return text
    tail = width // 3
    return f"{text[: width - tail - 1]}\u2026{text[-tail:]}"


def text_width(text: str, points: float) -> float:
    """Returns the width of a text in the font of figures [inch]."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=points), ismath=False)
    return float(width) / 72


def fitted(text: str, points: float, width: float) -> str:
    """Returns a text, shortened until it is at most ``width`` wide [inch] in a font of so many points."""
    kept = min(len(text), 80)
    text = shorten(text, kept)
    while kept > 4 and text_width(shorten(text, kept), points) > width:
        kept -= 1
    return shorten(text, kept)


def wrapped(text: str, points: float, width: float) -> list[str]:
    """Returns a text as lines that are at most ``width`` wide [inch] in a font of so many points; a longer word stays whole."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, points) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def method_label(spec: str, seq_len: int | None = None) -> str:
    """Returns the label of a curve: the spec, shortened, and the length that a method which follows it is frozen at."""
    return shorten(short_spec(spec)) + (f"\n(frozen at {seq_len} tokens)" if seq_len else "")


def inspect_figure(model: str, geometry: Mapping[str, Any], target: int, height: float) -> Figure:
    """Returns an empty figure of a height [inch] whose first line says which model it is about, with its numbers."""
    from matplotlib.figure import Figure

    trained = geometry["original_max_position_embeddings"]
    title = f"{shorten(model, 48)}: {describe_rotary_dim(geometry)}, rope_theta {geometry['rope_theta']:g}, "
    title += f"trained length L = {trained}" + (f", target L' = {target}" if target != trained else "")
    figure = Figure(figsize=(11.5, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, parse_math=False)
    return figure


def place_legend(place: Axes | Figure, handles: Sequence[Any], title: str) -> None:
    """Puts the legend to the right of a panel, or of all of them, where it covers nothing."""
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    if not hasattr(place, "set_xlabel"):
        where = {"loc": "outside right center"}
    legend = place.legend(
        handles=handles, title=title, alignment="left", fontsize=9, title_fontsize=9, handlelength=4.2,
        labelspacing=0.55, **where,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
