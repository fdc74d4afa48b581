"""Divisor and wavelength per rotary pair, several methods overlaid: as a file of ``inspect``, and of a record's methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.advise.inspection import inspect_rope
from ropectl.errors import ConfigError
from ropectl.records import InspectionRecord
from ropectl.report.figures.curves import subject_looks
from ropectl.report.figures.drawing import Canvas, Drawing, name_axes, name_mark
from ropectl.report.figures.output import save_figure
from ropectl.report.figures.style import (
    REFERENCE_COLOUR,
    TRAINED_COLOUR,
    curve_style,
    house_style,
    inspect_figure,
    method_label,
    place_legend,
)
from ropectl.report.figures.subjects import Evidence
from ropectl.rope.frequencies import critical_dimension, trained_inv_freq, wavelengths
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import short_spec
from ropectl.rope.registry import parse_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_frequencies(path: Path, model: str, records: Sequence[InspectionRecord], target: int) -> None:
    """Writes a figure of two panels over the pair index: how much slower each pair turns, and how long a turn takes.

    Args:
        path: File; its suffix sets the format.
        model: Name in the title.
        records: Of ``inspect``, on one geometry; those of ``none`` are the grey reference that is always drawn.
        target: L' [tokens].

    Raises:
        ConfigError: If the file cannot be written.
    """
    geometry = records[0].geometry
    shown = [record for record in records if record.method != "none"]
    with house_style():
        figure = inspect_figure(model, geometry.to_json(), target, 8.0)
        panels = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
        styles = [curve_style(index, len(shown), len(records[0].inv_freq)) for index in range(len(shown))]
        handles = _paint_panels(panels, shown, geometry, target, styles)
        place_legend(figure, handles, "method")
        save_figure(figure, path)


def pair_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns one figure of all methods that change a frequency; none where the geometry is not known."""
    geometry = evidence.geometry
    if geometry is None:
        return []
    target = evidence.target_length or geometry.original_max_position_embeddings
    names: dict[str, str] = {}  # a training changes no frequency: one curve per method
    for subject in evidence.subjects:
        names.setdefault(subject.method, subject.name)
    found = {name: record for spec, name in names.items() if (record := _inspected(spec, geometry, target))}
    if not found:
        return []
    styles = subject_looks(evidence.subjects)

    def paint(canvas: Canvas) -> None:
        panels = canvas.panels([1.35, 1.8], share_x=True)
        markers = [{**styles[name].line, "marker": styles[name].marker, "markersize": 2.6} for name in found]
        handles = _paint_panels(panels, list(found.values()), geometry, target, markers)
        labels = [short_spec(record.method) + _still(record, ", {} pairs stand still") for record in found.values()]
        canvas.legend(list(zip(["as trained", *labels], handles, strict=True)))

    length = geometry.original_max_position_embeddings
    caption = (
        f"What each method does to each rotary pair (computed, not measured): above, how much slower it turns than in "
        f"training; below, tokens a full turn takes. Shaded: a full turn within the trained length, {length} tokens. "
        "Methods that follow the length are frozen at the target."
    )
    return [Drawing("pairs", "Divisor and wavelength per pair", caption, paint)]


def _inspected(spec: str, geometry: RopeGeometry, target: int) -> InspectionRecord | None:
    """Returns what the formulas say about a method; None for the unscaled model and a spec that cannot be read.

    A record never makes a file be read: specs in records have their lists written out.
    """
    if spec == "none" or "@" in spec:
        return None
    try:
        method = parse_method(spec)
        return inspect_rope(geometry, method, target if method.depends_on_seq_len else None)
    except (ConfigError, ArithmeticError, ValueError):
        return None


def _paint_panels(
    panels: Sequence[Axes],
    records: Sequence[InspectionRecord],
    geometry: RopeGeometry,
    target: int,
    styles: Sequence[Mapping[str, Any]],
) -> list[Any]:
    """Draws divisors above and wavelengths below, over the pair index; returns the lines for a legend."""
    from matplotlib import rcParams

    upper, lower = panels
    note_size = 0.9 * float(rcParams["font.size"])
    handles = _divisor_panel(upper, records, geometry.num_pairs, styles)
    _wavelength_panel(lower, records, geometry, target, styles, note_size)
    critical = critical_dimension(geometry)
    if critical < geometry.turning_pairs:
        for axes in panels:
            axes.axvline(critical - 0.5, color="#777777", linewidth=1.0, linestyle=(0, (2, 2)))
        # The curves rise: at the top there is room to the left, unless the line is at the left itself.
        has_room, words = critical > 0.3 * geometry.num_pairs, f"critical pairs: from {critical} on"
        name_mark(lower, critical - 0.5, words, has_room, inside=True, fontsize=note_size, color="#555555")
    return handles


def _numbers(values: Sequence[float | None]) -> list[float]:
    """Returns values for a logarithmic axis, where a pair that stands still has no point."""
    return [math.nan if value is None else value for value in values]


def _still(record: InspectionRecord, words: str) -> str:
    """Returns the words with the number of pairs that stand still; nothing if all turn."""
    count = sum(value is None for value in record.wavelengths)
    return words.format(count) if count else ""


def _divisor_panel(
    axes: Axes, records: Sequence[InspectionRecord], num_pairs: int, styles: Sequence[Mapping[str, Any]]
) -> list[Any]:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    handles = [axes.axhline(1.0, color=REFERENCE_COLOUR, linewidth=1.2, label="as trained")]
    known = [1.0]
    for record, style in zip(records, styles, strict=True):
        values = _numbers(record.divisors)
        label = method_label(record.method, record.seq_len) + _still(record, "\n({} pairs stand still)")
        handles += axes.plot(range(num_pairs), values, label=label, **style)
        known += [value for value in values if math.isfinite(value)]
    axes.set_yscale("log")
    spread = max(known) / min(known)
    axes.set_ylim(min(known) / max(1.05, spread**0.06), max(known) * max(1.05, spread**0.06))
    axes.yaxis.set_major_locator(LogLocator(base=2.0 if spread <= 128 else 10.0))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    name_axes(axes, y="divisor f_i [1]", title="How much slower each pair turns than in training")
    return handles


def _wavelength_panel(
    axes: Axes,
    records: Sequence[InspectionRecord],
    geometry: RopeGeometry,
    target: int,
    styles: Sequence[Mapping[str, Any]],
    note_size: float,
) -> None:
    from matplotlib.ticker import MaxNLocator

    trained, num_pairs = geometry.original_max_position_embeddings, geometry.num_pairs
    reference = wavelengths(trained_inv_freq(geometry))
    axes.plot(range(num_pairs), reference, color=REFERENCE_COLOUR, linewidth=1.2)
    known = [*reference, trained, target]
    for record, style in zip(records, styles, strict=True):
        values = _numbers(record.wavelengths)
        axes.plot(range(num_pairs), values, **style)
        known += [value for value in values if math.isfinite(value)]
    low, high = min(known) / 1.6, max(known) * 1.6
    # Two lines of text fit between the target and the top, whose share of the panel they are.
    share = min(0.5, 4.3 * note_size / 72 / (axes.bbox.height / axes.figure.dpi))
    high = max(high, low * (target / low) ** (1 / (1 - share)))
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axhspan(low, trained, color=TRAINED_COLOUR, zorder=0, linewidth=0)
    lines: list[tuple[str, int, Any, str]] = [("L", trained, "-", "top")]
    if target > trained:
        lines.append(("L'", target, (0, (4, 3)), "bottom"))
    for name, height, dashes, side in lines:
        axes.axhline(height, color="black", linewidth=1.0, linestyle=dashes)
        axes.annotate(  # at the left end no curve is near: the fastest pairs have the shortest turns
            f"{name} = {height}", (0.0, height), xycoords=("axes fraction", "data"), ha="left", va=side,
            xytext=(6, 3 if side == "bottom" else -3), textcoords="offset points", fontsize=note_size,
        )  # fmt: skip
    axes.text(
        0.995, 0.02, "shaded: a full turn within the trained length", transform=axes.transAxes, ha="right", va="bottom",
        fontsize=note_size, color="#33536e", zorder=3,
        bbox={"facecolor": TRAINED_COLOUR, "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip
    name_axes(axes, "rotary pair i (0 turns fastest)", "wavelength [tokens]", "How long a full turn takes")
