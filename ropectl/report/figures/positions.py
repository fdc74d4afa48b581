"""Loss against the position in the window: where in a text a method begins to fail."""

from __future__ import annotations

from ropectl.report.figures.curves import shared_length, subject_looks
from ropectl.report.figures.drawing import Canvas, Drawing, drawing, length_axis, mark_trained, name_axes, sample_line
from ropectl.report.figures.subjects import Evidence
from ropectl.report.views.eval_perplexity import FIRST_SHOWN_POSITION


def position_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns mean losses over positions of the longest context, all subjects in one panel.

    Early positions have few tokens and differ between texts, not methods: they are left out where there are others.
    """
    measured = {s.name: curve for s in evidence.subjects if (curve := s.loss_by_position)}
    if not measured:
        return []
    late = {name: [pair for pair in curve if pair[0] >= FIRST_SHOWN_POSITION] for name, curve in measured.items()}
    curves = late if all(late.values()) else measured
    trained = shared_length(evidence.subjects)

    def paint(canvas: Canvas) -> None:
        from matplotlib.ticker import MaxNLocator

        (axes,) = canvas.panels([2.0])
        axes.yaxis.set_major_locator(MaxNLocator(5))  # the same ticks whatever the layout: their width decides it
        styles = subject_looks(evidence.subjects)
        for index, (name, curve) in enumerate(curves.items()):
            look = styles[name]
            size = 3.6 - 1.4 * index / len(curves)
            axes.plot(*zip(*curve, strict=True), **look.line, marker=look.marker, markersize=size)
        places = [place for curve in curves.values() for place, _ in curve]
        low, high = min(places), max(places)
        octaves = [float(2**power) for power in range(31) if low <= 2**power <= high]
        length_axis(axes, octaves or [low, high], 8, within=(low, high))
        canvas.legend([(name, sample_line(styles[name])) for name in curves])
        name_axes(axes, x="position in the window [tokens]", y="loss [nats a token]")
        mark_trained(axes, trained)

    windows = sorted({s.loss_window for s in evidence.subjects if s.name in measured})
    caption = "Mean loss of the targets at each position"
    span = str(windows[0]) if len(windows) == 1 else f"{windows[0]} to {windows[-1]}"
    caption += f" of the longest context, {span} tokens, two bins an octave"
    if trained is not None:
        caption += f"; shaded: the trained length, {trained} tokens"
    caption += "."
    if not evidence.same_tokens:
        caption += " The models read different tokens: levels do not compare."
    return [drawing("positions", "Loss by position in the window", " ".join([caption, *evidence.remarks]), paint)]
