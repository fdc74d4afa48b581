"""Figures of records, ready to be put into a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from ropectl.records import UnfinishedTraining
from ropectl.report.blocks import Figure, Figures
from ropectl.report.document import NOTE, Sentence
from ropectl.report.figures.catalog import drawings_of, drawings_of_runs
from ropectl.report.figures.drawing import Drawing
from ropectl.report.figures.output import svg_text
from ropectl.report.figures.training import training_drawings
from ropectl.report.runs_read import Run


def record_drawings(run: Run) -> list[Drawing]:
    """Returns the figures of a run's record; an unfinished training has none."""
    return [] if isinstance(run.record, UnfinishedTraining) else drawings_of(run.record)


def joint_drawings(runs: Sequence[Run]) -> list[Drawing]:
    """Returns the figures that show several runs together."""
    return drawings_of_runs({run.name: run.record for run in runs if not isinstance(run.record, UnfinishedTraining)})


def curve_drawings(run: Run) -> dict[str, list[Drawing]]:
    """Returns the curves of a run's trainings, by what the run calls them."""
    return {name: training_drawings(curves.metrics, curves.settings) for name, curves in run.curves.items()}


def figures(drawings: Iterable[Drawing], prefix: str) -> Figures | None:
    """Returns figures as SVG; None if there are none. One that cannot be drawn costs only itself.

    Args:
        drawings: What to draw.
        prefix: Of the ids in them, because no two figures of a page may share one.
    """
    found = [_figure(drawing, f"{prefix}{number}-") for number, drawing in enumerate(drawings)]
    return Figures(found) if found else None


def _figure(drawing: Drawing, prefix: str) -> Figure | Sentence:
    try:
        svg = svg_text(drawing.draw(), prefix)
    except Exception as error:  # numbers that no axis can hold: the page says all the rest
        return Sentence(f"{drawing.title}: could not be drawn ({type(error).__name__}: {error}).", NOTE)
    return Figure(Markup(svg), drawing.title, drawing.caption)
