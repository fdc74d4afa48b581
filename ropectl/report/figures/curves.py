"""Curves of measured points over the length: their intervals, what is past the capacity, and the words that go with them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ropectl.lengths import format_length
from ropectl.report.figures.drawing import Canvas, length_axis, mark_trained, name_axes, sample_line
from ropectl.report.figures.style import Look, looks
from ropectl.report.figures.subjects import Point, Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curves = Mapping[str, Sequence[Point]]

#: Bands of more curves would hide each other; then each point has a thin bar instead.
MOST_BANDS = 3

#: How far bars of neighbouring curves stand apart, as part of the length.
BAR_DISTANCE = 0.012

#: With a wider range of values the crowd of curves gets a panel of its own.
WIDE_RANGE = 2.5

#: What is within this factor of the median belongs to the crowd.
CROWD = 1.5

BEYOND = "open: past capacity"


def subject_looks(subjects: Sequence[Subject]) -> dict[str, Look]:
    """Returns how each subject is drawn, by its name: the same in every figure of a record."""
    found = looks([(subject.family, subject.tuned, subject.is_reference) for subject in subjects])
    return {subject.name: look for subject, look in zip(subjects, found, strict=True)}


def shared_length(subjects: Iterable[Subject]) -> int | None:
    """Returns the trained length [tokens] if it is the same for all."""
    lengths = {subject.trained_length for subject in subjects}
    return lengths.pop() if len(lengths) == 1 else None


def all_values(curves: Curves, with_intervals: bool) -> list[float]:
    """Returns every value, and every end of an interval if wanted."""
    found = [point.value for curve in curves.values() for point in curve]
    if with_intervals:
        found += [end for curve in curves.values() for p in curve for end in (p.low, p.high) if end is not None]
    return found


def crowd_of(curves: Curves) -> list[float]:
    """Returns the values that a few far larger ones would press together; nothing where a single panel shows all."""
    values = all_values(curves, False)
    if len(curves) < 3 or max(values) / min(values) < WIDE_RANGE:
        return []
    crowd = [value for value in values if value <= CROWD * statistics.median(values)]
    return crowd if max(crowd) / min(crowd) < WIDE_RANGE and len(crowd) >= len(values) / 2 else []


def paint_curves(canvas: Canvas, panels: Sequence[Axes], curves: Curves, styles: Mapping[str, Look]) -> None:
    """Draws every curve into every panel, intervals into the first, and the legend below or beside them."""
    lengths = [point.length for curve in curves.values() for point in curve]
    for axes in panels:
        for index, (name, curve) in enumerate(curves.items()):
            paint_curve(axes, curve, styles[name], 4.6 - 1.6 * index / len(curves))
            if axes is panels[0]:
                paint_intervals(axes, curve, styles[name], index, len(curves))
        length_axis(axes, lengths, 6 if canvas.is_narrow else 10)
    legend = [(name, sample_line(styles[name])) for name in curves]
    if any(point.beyond for curve in curves.values() for point in curve):
        legend.append((BEYOND, sample_line(Look("#444444", "", "o"), markerfacecolor="white")))
    canvas.legend(legend)


def paint_intervals(axes: Axes, curve: Sequence[Point], look: Look, index: int, count: int) -> None:
    """Draws the intervals of curve ``index`` of ``count``: as a band, or as bars side by side where bands are too many."""
    bounded = [(p.length, p.low, p.high) for p in curve if p.low is not None and p.high is not None]
    x, low, high = ([each[place] for each in bounded] for place in range(3))
    if count <= MOST_BANDS and len(bounded) > 1:
        axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0, zorder=2)
    elif bounded:
        aside = [length * (1 + BAR_DISTANCE * (index - (count - 1) / 2)) for length in x]
        axes.vlines(aside, low, high, color=look.color, alpha=0.45, linewidth=0.8, zorder=2)


def paint_curve(axes: Axes, curve: Sequence[Point], look: Look, size: float) -> None:
    """Draws one curve; points past the capacity are open, later curves have smaller markers."""
    axes.plot([p.length for p in curve], [p.value for p in curve], **look.line, zorder=3)
    for beyond in (False, True):
        chosen = [p for p in curve if p.beyond is beyond]
        if chosen:
            axes.plot(
                [p.length for p in chosen], [p.value for p in chosen], linestyle="", marker=look.marker, zorder=4,
                markersize=size, color=look.color, markerfacecolor="white" if beyond else look.color,
                markeredgewidth=0.9,
            )  # fmt: skip


def finish_panels(panels: Sequence[Axes], trained: int | None, x: str) -> None:
    """Marks the trained length and names the shared axis of lengths."""
    for index, axes in enumerate(panels):
        mark_trained(axes, trained, name=index == 0)
    name_axes(panels[-1], x=x)


def reading_words(curves: Curves, trained: int | None, interval: str, sample: str) -> str:
    """Returns how such a figure is read, and how much is behind it.

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
        parts.append("open markers: past the length that the method is made for")
    counts = sorted({point.samples for point in found if point.samples})
    if counts:
        many = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        parts.append(f"{many} {sample}{'' if counts == [1] else 's'} a point")
    return "; ".join(parts)
