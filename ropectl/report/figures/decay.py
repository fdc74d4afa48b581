"""Shows how the mean attention score decays with distance, by base and by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.report.figures.drawing import name_axes, name_mark
from ropectl.report.figures.output import save_figure
from ropectl.report.figures.style import curve_style, house_style, inspect_figure, method_label, place_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AXIS = "mean score / (|q| |k| A²) [1]"
_NOTE = (
    "line: mean over neighbouring distances; band, where there are few curves: down to the lowest;\n"
    "markers: one distance, by the model's own code; ticks on the zero line: first distance with a negative score"
)

#: With more curves, bands would hide each other.
_MOST_BANDS = 5

_TITLES = {"base": "By base, unscaled", "method": "By method"}


def plot_decay(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a figure of the mean score of equal vectors over their distance.

    Lines are means of the closed form over neighbouring distances, the bands below them (of at most five curves)
    reach down to the lowest value, markers were computed by the model's own code.

    Args:
        path: File; its suffix sets the format.
        record: Of ``inspect --self-test``.

    Raises:
        ConfigError: If the file cannot be written.
    """
    kinds = [kind for kind in _TITLES if any(curve["kind"] == kind for curve in record["decay"])]
    lowest = min(min(curve["low"]) for curve in record["decay"])
    with house_style():
        figure = inspect_figure(record["model"], record["geometry"], record["target_length"], 4.2 * len(kinds))
        panels = figure.subplots(len(kinds), 1, sharex=True, squeeze=False)[:, 0]
        for axes, kind in zip(panels, kinds, strict=True):
            curves = [curve for curve in record["decay"] if curve["kind"] == kind]
            _panel(axes, kind, curves, record)
            axes.set_ylim(min(-0.1, lowest * 1.15), 1.02)
        name_axes(panels[-1], x=f"distance between query and key [tokens]\n{_NOTE}")
        save_figure(figure, path)


def _panel(axes: Axes, kind: str, curves: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    axes.set_xscale("log")
    few = len(curves) <= _MOST_BANDS
    for index, curve in enumerate(curves):
        style = {**curve_style(index, len(curves), 1), "markevery": None}
        line, marker = {**style, "marker": ""}, {**style, "linestyle": "", "markersize": 3.5, "alpha": 0.7}
        label = f"{curve['rope_theta']:g}" if kind == "base" else method_label(curve["method"], curve["seq_len"])
        handles.append(Line2D([], [], label=label, **style))
        axes.plot(curve["distances"], curve["mean"], **line)
        if few:
            axes.fill_between(curve["distances"], curve["low"], curve["mean"], color=style["color"], alpha=0.13, lw=0)
        shown = slice(None) if few else slice(index % 4, None, 4)
        axes.plot(curve["measured"]["distances"][shown], curve["measured"]["scores"][shown], **marker)
        if curve["first_negative"] is not None:
            tick = {"marker": "|", "markersize": 16, "markeredgewidth": 2.2, "color": style["color"]}
            axes.plot(curve["first_negative"], 0.0, **tick)
    axes.axhline(0.0, color="black", linewidth=1.0)
    trained, target = record["geometry"]["original_max_position_embeddings"], record["target_length"]
    for length, name, dashes in ((trained, "L", "-"), (target, "L'", (0, (4, 3)))):
        if length == target == trained and name == "L'":
            continue
        axes.axvline(length, color="black", linewidth=1.0, linestyle=dashes)
        name_mark(axes, length, f"{name} = {length}", to_left=True, inside=True, fontsize=9)
    name_axes(axes, y=_AXIS, title=_TITLES[kind])
    place_legend(axes, handles, "rope_theta" if kind == "base" else "method")
