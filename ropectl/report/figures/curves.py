"""Figures of curves over the length: intervals, open markers, the trained length, and the caption."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ropectl.lengths import format_length
from ropectl.report.figures.drawing import (
    Canvas,
    Drawing,
    length_axis,
    mark_trained,
    name_axes,
    sample_line,
    value_axis,
)
from ropectl.report.figures.style import Look, looks
from ropectl.report.figures.subjects import Point, Subject
from ropectl.report.tables.words import PAST, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curves = Mapping[str, Sequence[Point]]

#: What an open marker means, in every figure that has one.
OPEN_MARKERS = f"open markers: {PAST}"

#: With more curves, bands would hide each other: each point has a thin bar instead.
MOST_BANDS = 3

#: Distance between the bars of neighbouring curves, as part of the length.
BAR_DISTANCE = 0.012

#: If the largest value is more than this many times the smallest, most of the curves get a second panel.
WIDE_RANGE = 2.5

#: The second panel shows values up to this many times the median.
ENLARGED = 1.5


def subject_looks(subjects: Sequence[Subject]) -> dict[str, Look]:
    """Returns how each subject is drawn, by its name: the same in every figure of a record."""
    found = looks([(subject.family, subject.tuned, subject.is_reference) for subject in subjects])
    return {subject.name: look for subject, look in zip(subjects, found, strict=True)}


def shared_length(subjects: Iterable[Subject]) -> int | None:
    """Returns the trained length [tokens] if it is the same for all."""
    lengths = {subject.trained_length for subject in subjects}
    return lengths.pop() if len(lengths) == 1 else None


def all_values(curves: Curves) -> list[float]:
    """Returns every value and every end of an interval."""
    points = [point for curve in curves.values() for point in curve]
    return [value for p in points for value in (p.value, p.low, p.high) if value is not None]


def values_to_enlarge(curves: Curves) -> list[float]:
    """Returns the values that a few far larger ones would squeeze; none where a single panel shows all."""
    values = [point.value for curve in curves.values() for point in curve]
    if len(curves) < 3 or max(values) / min(values) < WIDE_RANGE:
        return []
    found = [value for value in values if value <= ENLARGED * statistics.median(values)]
    return found if max(found) / min(found) < WIDE_RANGE and len(found) >= len(values) / 2 else []


def curve_drawing(
    names: tuple[str, str, str],
    curves: Curves,
    styles: Mapping[str, Look],
    trained: int | None,
    axis_names: tuple[str, str],
    scale: Callable[[Axes], None],
    height: float = 2.0,
    enlarged: Sequence[float] = (),
) -> Drawing:
    """Returns a figure of curves over the length, with a second panel below where some values are enlarged.

    Args:
        names: File stem, title and caption.
        curves: By name.
        styles: How each curve is drawn, by its name.
        trained: L [tokens], if it is the same for all.
        axis_names: Of x and y.
        scale: Sets the scale of y in the first panel.
        height: Of a single panel in a column [inch].
        enlarged: Values that the second panel shows.
    """
    x, y = axis_names

    def paint(canvas: Canvas) -> None:
        panels = canvas.panels([1.35, 1.75] if enlarged else [height], share_x=True)
        _paint_curves(canvas, panels, curves, styles)
        scale(panels[0])
        name_axes(panels[0], y=y)
        if enlarged:
            value_axis(panels[1], enlarged)
            name_axes(panels[1], y=f"{y}, enlarged")
        for axes in panels:
            mark_trained(axes, trained, name=axes is panels[0])
        name_axes(panels[-1], x=x)

    return Drawing(*names, paint)


def _paint_curves(canvas: Canvas, panels: Sequence[Axes], curves: Curves, styles: Mapping[str, Look]) -> None:
    """Draws every curve into every panel, intervals into the first, and the legend."""
    lengths = [point.length for curve in curves.values() for point in curve]
    for axes in panels:
        for index, (name, curve) in enumerate(curves.items()):
            _paint_curve(axes, curve, styles[name], 4.6 - 1.6 * index / len(curves))
            if axes is panels[0]:
                _paint_intervals(axes, curve, styles[name], index, len(curves))
        length_axis(axes, lengths, 6 if canvas.is_narrow else 10)
    legend = [(name, sample_line(styles[name])) for name in curves]
    any_beyond = any(point.beyond for curve in curves.values() for point in curve)
    canvas.legend(legend, OPEN_MARKERS if any_beyond else "")


def _paint_intervals(axes: Axes, curve: Sequence[Point], look: Look, index: int, count: int) -> None:
    """Draws the intervals of curve ``index`` of ``count``: as a band, or as bars side by side where bands are too many."""
    bounded = [(p.length, p.low, p.high) for p in curve if p.low is not None and p.high is not None]
    x, low, high = ([each[place] for each in bounded] for place in range(3))
    if count <= MOST_BANDS and len(bounded) > 1:
        axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0, zorder=2)
    elif bounded:
        aside = [length * (1 + BAR_DISTANCE * (index - (count - 1) / 2)) for length in x]
        axes.vlines(aside, low, high, color=look.color, alpha=0.45, linewidth=0.8, zorder=2)


def _paint_curve(axes: Axes, curve: Sequence[Point], look: Look, size: float) -> None:
    """Draws one curve; points past the length that the method is made for are open, later curves have smaller markers."""
    axes.plot([p.length for p in curve], [p.value for p in curve], **look.line, zorder=3)
    for beyond in (False, True):
        chosen = [p for p in curve if p.beyond is beyond]
        if chosen:
            axes.plot(
                [p.length for p in chosen], [p.value for p in chosen], linestyle="", marker=look.marker, zorder=4,
                markersize=size, color=look.color, markerfacecolor="white" if beyond else look.color,
                markeredgewidth=0.9,
            )  # fmt: skip


def reading_words(curves: Curves, trained: int | None, interval: str, sample: str) -> str:
    """Returns the part of the caption on intervals, marks and sample sizes.

    Args:
        curves: What is drawn.
        trained: L [tokens], if it is marked.
        interval: What the intervals are of.
        sample: What a point is a mean over, in the singular.
    """
    found = [point for curve in curves.values() for point in curve]
    parts = []
    if any(point.low is not None for point in found):
        parts.append(f"{'bands' if len(curves) <= MOST_BANDS else 'bars'}: 95 % intervals {interval}")
    if trained is not None:
        parts.append(f"shaded: the trained length, {format_length(trained)} tokens")
    if any(point.beyond for point in found):
        parts.append(OPEN_MARKERS)
    counts = {point.samples for point in found if point.samples}
    if counts:
        parts.append(f"{span(counts)} {sample}{'' if counts == {1} else 's'} a point")
    return "; ".join(parts)
