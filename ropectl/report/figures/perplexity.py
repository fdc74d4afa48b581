"""Perplexity against the context length, one figure a protocol."""

from __future__ import annotations

from ropectl.report.figures.curves import (
    Curves,
    all_values,
    crowd_of,
    finish_panels,
    paint_curves,
    reading_words,
    shared_length,
    subject_looks,
)
from ropectl.report.figures.drawing import Canvas, Drawing, drawing, name_axes, value_axis
from ropectl.report.figures.subjects import PREFIX, TAIL, Evidence

#: File stem, title, and what is scored, by protocol of ``eval-perplexity``.
PROTOCOLS: dict[str, tuple[str, str, str]] = {
    PREFIX: ("perplexity", "{} against context", "{} of the first N tokens of each document"),
    TAIL: (
        "perplexity-tail",
        "{} of the same targets against context",
        "{} of the same last tokens of each document, given N tokens of context: a curve that does not rise bears "
        "the longer context, one that falls uses it",
    ),
    "sliding": ("perplexity-sliding", "{} in sliding windows", "{} of documents in sliding windows of N tokens"),
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
    """Returns a drawing for each protocol that anything was measured with.

    Where texts were read in different tokens, bits per byte are drawn, which can be compared.
    """
    unit = "Perplexity" if evidence.same_tokens else "Bits per byte"
    found = []
    for protocol, words in PROTOCOLS.items():
        measured = {s.name: s.curve(protocol, in_bits=not evidence.same_tokens) for s in evidence.subjects}
        curves = {name: curve for name, curve in measured.items() if curve}
        if curves:
            name, title, scored = (part.format(unit) for part in words)
            found.append(_drawing(evidence, curves, name, title, scored, unit.lower()))
    return found


def _drawing(evidence: Evidence, curves: Curves, name: str, title: str, scored: str, unit: str) -> Drawing:
    trained = shared_length(evidence.subjects)
    crowd = crowd_of(curves)

    def paint(canvas: Canvas) -> None:
        panels = canvas.panels([1.35, 1.75] if crowd else [2.0], share_x=True)
        paint_curves(canvas, panels, curves, subject_looks(evidence.subjects))
        value_axis(panels[0], all_values(curves, with_intervals=True))
        if crowd:
            value_axis(panels[1], crowd)
            name_axes(panels[0], y=unit)
            name_axes(panels[1], y=f"{unit}, enlarged")
        else:
            name_axes(panels[0], y=unit)
        finish_panels(panels, trained, "context N [tokens]")

    caption = f"{scored}; {reading_words(curves, trained, 'over documents', 'document')}."
    if evidence.geometry is not None and len(curves) > 1 and any(p.low is not None for c in curves.values() for p in c):
        caption += " All read the same documents: differences are surer than the intervals."
    if crowd:
        caption += " Below, the lower values enlarged."
    return drawing(name, title, " ".join([caption, *evidence.remarks]), paint)
