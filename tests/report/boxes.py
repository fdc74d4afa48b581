"""The boxes of the labels of a figure: which of them lie over something."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from itertools import combinations
from typing import Any

from ropectl.report.figures.style import house_style

#: Boxes that only touch, by rounding or by the room that a font keeps around its letters, are apart [pixels].
SLACK = 1.0

Box = tuple[str, Any]


def drawn_by(figure: Any, kind: str) -> Any:
    """The renderer of a kind of file, after it has drawn the figure: text has other widths in bitmaps than in SVG and PDF."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import RendererSVG

    if kind == "svg":
        figure.set_dpi(72)
        width, height = 72 * figure.get_size_inches()
        renderer: Any = RendererSVG(width, height, StringIO())
    else:
        figure.set_dpi(300)
        renderer = FigureCanvasAgg(figure).get_renderer()
    with house_style(), renderer._draw_disabled():  # as in draw_without_rendering: only boxes are wanted
        figure.draw(renderer)
    return renderer


def labels(figure: Any, kind: str) -> tuple[list[Box], list[Box], list[Box]]:
    """The boxes of the texts around panels, of those inside of them, and of the panels, as they are drawn."""
    renderer = drawn_by(figure, kind)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    whole = [*figure.texts, figure._suptitle, figure._supxlabel, figure._supylabel]
    outer = [text for text in dict.fromkeys(whole) if text is not None]
    inner: list[Any] = []
    for axes in panels:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            outer.append(axis.label)
            outer += [
                label
                for tick in axis.get_major_ticks()
                for label in (tick.label1, tick.label2)
                if label.get_visible() and low <= tick.get_loc() <= high
            ]
        outer += [axes.title, axes._left_title, axes._right_title]
        inner += axes.texts
    boxes = [[(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text()] for texts in (outer, inner)]
    legends = [*figure.legends, *(one for axes in panels if (one := axes.get_legend()) is not None)]
    boxes[0] += [("legend", legend.get_window_extent(renderer)) for legend in legends]
    return boxes[0], boxes[1], [(f"panel {i}", axes.patch.get_window_extent(renderer)) for i, axes in enumerate(panels)]


def covers(one: Any, other: Any) -> bool:
    """Whether two boxes share more than a rim."""
    return bool(
        min(one.x1, other.x1) - max(one.x0, other.x0) > SLACK and min(one.y1, other.y1) - max(one.y0, other.y0) > SLACK
    )


def faults(figure: Any) -> list[str]:
    """What lies over something else, in a bitmap or in a drawing."""
    return [f"{kind}: {fault}" for kind in ("png", "svg") for fault in faults_in(figure, kind)]


def faults_in(figure: Any, kind: str) -> Iterator[str]:
    """Texts over texts, texts around panels over panels, texts within over an edge, and what is outside."""
    outer, inner, panels = labels(figure, kind)
    for (name, box), (other, theirs) in combinations(outer + inner, 2):
        if covers(box, theirs):
            yield f"{name!r} over {other!r}"
    for name, box in outer:
        yield from (f"{name!r} over {panel}" for panel, area in panels if covers(box, area))
    for name, box in inner:
        for panel, area in panels:
            is_inside = area.x0 <= box.x0 and box.x1 <= area.x1 and area.y0 <= box.y0 and box.y1 <= area.y1
            if covers(box, area) and not is_inside:
                yield f"{name!r} over the edge of {panel}"
    width, height = figure.bbox.width, figure.bbox.height
    for name, box in outer + inner:
        if min(box.x0, box.y0) < -SLACK or box.x1 > width + SLACK or box.y1 > height + SLACK:
            yield f"{name!r} outside of the canvas"
