"""Scores of retrieval tasks against length."""

from __future__ import annotations

from ropectl.report.figures.curves import finish_panels, paint_curves, reading_words, shared_length
from ropectl.report.figures.drawing import Canvas, Drawing, drawing, name_axes, share_axis
from ropectl.report.figures.style import looks, shorten
from ropectl.report.figures.subjects import Evidence, Subject


def task_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns one figure of all tasks for each subject that has any."""
    having = [subject for subject in evidence.subjects if subject.tasks]
    return [_of_subject(subject, index if len(having) > 1 else None) for index, subject in enumerate(having)]


def _of_subject(subject: Subject, index: int | None) -> Drawing:
    curves = subject.task_scores
    styles = dict(zip(curves, looks([(task, False, False) for task in curves]), strict=True))
    trained = shared_length([subject])

    def paint(canvas: Canvas) -> None:
        panels = canvas.panels([2.0])
        paint_curves(canvas, panels, curves, styles)
        share_axis(panels[0])
        name_axes(panels[0], y="score [%]")
        finish_panels(panels, trained, "length [tokens]")

    several = "" if index is None else f" ({shorten(subject.name)})"
    caption = f"Score of each task{several}; {reading_words(curves, trained, 'of the score', 'prompt')}."
    name = "tasks" if index is None else f"tasks-{index + 1}"
    return drawing(name, f"Retrieval tasks by length{several}", caption, paint)
