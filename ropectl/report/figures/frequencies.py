"""Divisor and wavelength per rotary pair, several methods overlaid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.records import InspectionRecord
from ropectl.report.figures.output import save_figure
from ropectl.report.figures.style import (
    REFERENCE_COLOUR,
    TRAINED_COLOUR,
    curve_style,
    geometry_title,
    house_style,
    method_label,
    place_legend,
    write_text,
)
from ropectl.rope.frequencies import critical_dimension, trained_inv_freq, wavelengths
from ropectl.rope.geometry import RopeGeometry

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_frequencies(path: Path, model: str, records: Sequence[InspectionRecord], target: int) -> None:
    """Writes a figure of two panels over the pair index: by how much pairs are slowed, and how long their turns are.

    Args:
        path: File; its suffix says the format.
        model: What the figure is called after.
        records: Of ``inspect``, on one geometry; those of ``none`` are the grey reference that is always drawn.
        target: L' [tokens].

    Raises:
        ConfigError: If the file cannot be written.
    """
    from matplotlib.figure import Figure

    geometry = records[0].geometry
    shown = [record for record in records if record.method != "none"]
    with house_style():
        figure = Figure(figsize=(11.5, 8.0), layout="constrained")
        figure.suptitle(
            geometry_title(model, geometry.to_json(), target), x=0.01, ha="left", fontsize=12, parse_math=False
        )
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
        styles = [curve_style(index, len(shown), len(records[0].inv_freq)) for index in range(len(shown))]
        place_legend(figure, frequency_panels(upper, lower, shown, geometry, target, styles), "method")
        save_figure(figure, path)


def frequency_panels(
    upper: Axes,
    lower: Axes,
    records: Sequence[InspectionRecord],
    geometry: RopeGeometry,
    target: int,
    styles: Sequence[Mapping[str, Any]],
) -> list[Any]:
    """Draws divisors and wavelengths over the pair index, and returns the lines for a legend.

    Args:
        upper: Panel of the divisors.
        lower: Panel of the wavelengths.
        records: Of ``inspect``, on this geometry.
        geometry: What the model was trained with.
        target: L' [tokens].
        styles: How to draw the curve of each record.
    """
    handles = _divisor_panel(upper, records, geometry.num_pairs, styles)
    _wavelength_panel(lower, records, geometry, target, styles)
    critical = critical_dimension(geometry)
    if critical < geometry.turning_pairs:
        _mark_critical(upper, lower, critical, geometry.num_pairs)
    return handles


def _note_size() -> float:
    """Size of words inside of a panel [points]."""
    from matplotlib import rcParams

    return 0.9 * float(rcParams["font.size"])


def _values(numbers: Sequence[float | None]) -> list[float]:
    """Numbers for a logarithmic axis: a pair that stands still has no point."""
    return [math.nan if number is None else number for number in numbers]


def _label(record: InspectionRecord) -> str:
    still = sum(value is None for value in record.wavelengths)
    return method_label(record.method, record.seq_len) + (f"\n({still} pairs stand still)" if still else "")


def _divisor_panel(
    axes: Axes, records: Sequence[InspectionRecord], num_pairs: int, styles: Sequence[Mapping[str, Any]]
) -> list[Any]:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    handles = [axes.axhline(1.0, color=REFERENCE_COLOUR, linewidth=1.2, label="as trained")]
    known = [1.0]
    for record, style in zip(records, styles, strict=True):
        values = _values(record.divisors)
        handles += axes.plot(range(num_pairs), values, label=_label(record), **style)
        known += [value for value in values if math.isfinite(value)]
    axes.set_yscale("log")
    spread = max(known) / min(known)
    axes.set_ylim(min(known) / max(1.05, spread**0.06), max(known) * max(1.05, spread**0.06))
    axes.yaxis.set_major_locator(LogLocator(base=2.0 if spread <= 128 else 10.0))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    write_text(axes, "How much slower each pair turns than in training", "", "divisor f_i [1]")
    return handles


def _wavelength_panel(
    axes: Axes,
    records: Sequence[InspectionRecord],
    geometry: RopeGeometry,
    target: int,
    styles: Sequence[Mapping[str, Any]],
) -> None:
    from matplotlib.ticker import MaxNLocator

    trained, num_pairs = geometry.original_max_position_embeddings, geometry.num_pairs
    reference = wavelengths(trained_inv_freq(geometry))
    axes.plot(range(num_pairs), reference, color=REFERENCE_COLOUR, linewidth=1.2)
    known = [*reference, trained, target]
    for record, style in zip(records, styles, strict=True):
        values = _values(record.wavelengths)
        axes.plot(range(num_pairs), values, **style)
        known += [value for value in values if math.isfinite(value)]
    low, high = min(known) / 1.6, max(known) * 1.6
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axhspan(low, trained, color=TRAINED_COLOUR, zorder=0, linewidth=0)
    axes.axhline(trained, color="black", linewidth=1.0)
    _line_label(axes, trained, f"L = {trained}", "top")
    if target > trained:
        axes.axhline(target, color="black", linewidth=1.0, linestyle=(0, (4, 3)))
        _line_label(axes, target, f"L' = {target}", "bottom")
    axes.text(
        0.995, 0.02, "shaded: a full turn within the trained length", transform=axes.transAxes, ha="right", va="bottom",
        fontsize=_note_size(), color="#33536e", zorder=3,
        bbox={"facecolor": TRAINED_COLOUR, "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip
    write_text(axes, "How long a full turn takes", "rotary pair i (0 turns fastest)", "wavelength [tokens]")


def _line_label(axes: Axes, height: float, text: str, side: str) -> None:
    """Names a horizontal line at the left end, where no curve is: the fastest pairs have the shortest turns."""
    axes.annotate(
        text, (0.0, height), xycoords=("axes fraction", "data"), xytext=(6, 3 if side == "bottom" else -3),
        textcoords="offset points", ha="left", va=side, fontsize=_note_size(),
    )  # fmt: skip


def _mark_critical(upper: Axes, lower: Axes, critical: int, num_pairs: int) -> None:
    """A line before the first critical pair in both panels, named where no curve passes: above the rising ones."""
    for axes in (upper, lower):
        axes.axvline(critical - 0.5, color="#777777", linewidth=1.0, linestyle=(0, (2, 2)))
    has_room = critical > 0.3 * num_pairs
    lower.annotate(
        f"critical pairs: from {critical} on", (critical - 0.5, 0.97), xycoords=("data", "axes fraction"),
        xytext=(-5 if has_room else 5, 0), textcoords="offset points", ha="right" if has_room else "left", va="top",
        fontsize=_note_size(), color="#555555",
    )  # fmt: skip
