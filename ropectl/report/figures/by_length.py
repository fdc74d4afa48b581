"""What is measured by length or position: perplexity, passkeys found, scores of tasks, and losses within a window."""

from __future__ import annotations

from functools import partial

from ropectl.report.figures.curves import (
    all_values,
    curve_drawing,
    reading_words,
    shared_length,
    subject_looks,
    values_to_enlarge,
)
from ropectl.report.figures.drawing import (
    Canvas,
    Drawing,
    length_axis,
    mark_trained,
    name_axes,
    sample_line,
    share_axis,
    value_axis,
)
from ropectl.report.figures.style import looks, shorten
from ropectl.report.figures.subjects import PREFIX, TAIL, Evidence
from ropectl.report.tables.words import span
from ropectl.report.views.eval_perplexity import FIRST_SHOWN_POSITION

#: File stem, title, and what is scored, by protocol of ``eval-perplexity``.
PROTOCOLS: dict[str, tuple[str, str, str]] = {
    PREFIX: ("perplexity", "{} against context", "{} of the first N tokens of each {text_unit}"),
    TAIL: (
        "perplexity-tail",
        "{} of the same targets against context",
        "{} of the same last tokens of each {text_unit}, given N tokens of context: a curve that does not rise copes "
        "with the longer context, one that falls uses it",
    ),
    "sliding": (
        "perplexity-sliding",
        "{} in sliding windows",
        "{} in sliding windows of N tokens, what is new in each scored",
    ),
    "overlapping": (
        "perplexity-overlapping",
        "{} of whole windows",
        "{} of all tokens of overlapping windows of N tokens",
    ),
    "key-tokens": (
        "perplexity-key-tokens",
        "{} of key tokens",
        "{} of the tokens that gain from a long context, given N tokens of it",
    ),
}


def perplexity_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns one figure for each protocol that anything was measured with.

    Where texts were read in different tokens, bits per byte are drawn, which can be compared.
    """
    trained, styles, found = shared_length(evidence.subjects), subject_looks(evidence.subjects), []
    for protocol, words in PROTOCOLS.items():
        measured = {s.name: s.curve(protocol, in_bits=not evidence.same_tokens) for s in evidence.subjects}
        curves = {name: curve for name, curve in measured.items() if curve}
        if not curves:
            continue
        name, title, scored = (part.format(evidence.unit.capitalize(), text_unit=evidence.text_unit) for part in words)
        enlarged = values_to_enlarge(curves)
        has_intervals = any(point.low is not None for curve in curves.values() for point in curve)
        over = f"over {evidence.drawn_unit}s"
        caption = f"{scored}; {reading_words(curves, trained, over, evidence.text_unit)}."
        if evidence.geometry is not None and len(curves) > 1 and has_intervals:
            caption += f" All read the same {evidence.text_unit}s: differences are surer than the intervals."
        if enlarged:
            caption += " Below, the lower values enlarged."
        scale, axis_names = partial(value_axis, values=all_values(curves)), ("context N [tokens]", evidence.unit)
        names = name, title, " ".join([caption, *evidence.remarks])
        found.append(curve_drawing(names, curves, styles, trained, axis_names, scale, enlarged=enlarged))
    return found


def passkey_curves(evidence: Evidence) -> list[Drawing]:
    """Returns the share of passkeys found by length, all subjects in one panel, if there are several."""
    curves = {s.name: s.passkey_shares for s in evidence.subjects if s.passkey}
    if len(curves) < 2:
        return []
    trained, styles = shared_length(evidence.subjects), subject_looks(evidence.subjects)
    caption = f"Share of planted numbers found; {reading_words(curves, trained, 'of the share', 'prompt')}."
    names = "passkey-curves", "Passkeys found against length", caption
    axis_names = "prompt length [tokens]", "passkeys found [%]"
    return [curve_drawing(names, curves, styles, trained, axis_names, share_axis, height=1.8)]


def task_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns one figure of all tasks for each subject that has any."""
    measured, found = [subject for subject in evidence.subjects if subject.tasks], []
    for number, subject in enumerate(measured, 1):
        curves, trained, several = subject.task_scores, shared_length([subject]), len(measured) > 1
        styles = dict(zip(curves, looks([(task, False, False) for task in curves]), strict=True))
        whose = f" ({shorten(subject.name)})" if several else ""
        caption = f"Score of each task{whose}; {reading_words(curves, trained, 'of the score', 'prompt')}."
        names = f"tasks-{number}" if several else "tasks", f"Retrieval tasks by length{whose}", caption
        found.append(curve_drawing(names, curves, styles, trained, ("length [tokens]", "score [%]"), share_axis))
    return found


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

    windows = span(s.loss_window for s in evidence.subjects if s.name in measured)
    caption = f"Mean loss of the targets at each position of the longest context, {windows} tokens, two bins an octave"
    if trained is not None:
        caption += f"; shaded: the trained length, {trained} tokens"
    caption += "."
    if not evidence.same_tokens:
        caption += " The models read different tokens: levels do not compare."
    return [Drawing("positions", "Loss by position in the window", " ".join([caption, *evidence.remarks]), paint)]
