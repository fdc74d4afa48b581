"""Figures of records, ready to stand in a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from markupsafe import Markup

from ropectl.report.blocks import Figure, Figures
from ropectl.report.document import NOTE, Sentence

if TYPE_CHECKING:
    from ropectl.records.reading import AnyRecord
    from ropectl.report.figures.catalog import Drawing
    from ropectl.report.runs_read import Run


def record_drawings(record: AnyRecord) -> list[Drawing]:
    """Returns the figures of a record."""
    from ropectl.report.figures.catalog import drawings_of

    return drawings_of(record)


def joint_drawings(records: Mapping[str, AnyRecord]) -> list[Drawing]:
    """Returns the figures of several records together."""
    from ropectl.report.figures.catalog import drawings_of_runs

    return drawings_of_runs(records)


def curve_drawings(run: Run) -> dict[str, list[Drawing]]:
    """Returns the curves of a run's trainings, by what the run calls them."""
    from ropectl.report.figures.catalog import training_drawings

    return {name: training_drawings(curves.metrics, curves.settings) for name, curves in run.curves.items()}


def figures(drawings: Iterable[Drawing], prefix: str) -> Figures | None:
    """Returns figures as SVG; None if there are none. One that cannot be drawn costs only itself.

    Args:
        drawings: What to draw.
        prefix: Of the ids in them, for no two figures of a page may share one.
    """
    found = [_figure(drawing, f"{prefix}{number}-") for number, drawing in enumerate(drawings)]
    return Figures(found) if found else None


def _figure(drawing: Drawing, prefix: str) -> Figure | Sentence:
    from ropectl.report.figures.output import svg_text

    try:
        svg = svg_text(drawing.draw(), prefix)
    except Exception as error:  # numbers that no axis can hold: the page says all the rest
        return Sentence(f"{drawing.title}: could not be drawn ({type(error).__name__}: {error}).", NOTE)
    return Figure(Markup(svg), drawing.title, drawing.caption)
