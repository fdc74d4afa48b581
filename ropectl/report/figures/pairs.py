"""Divisor and wavelength per rotary pair, for the methods of a record: arithmetic on its geometry and specs."""

from __future__ import annotations

from ropectl.advise.inspection import inspect_rope
from ropectl.errors import ConfigError
from ropectl.records import InspectionRecord
from ropectl.report.figures.curves import subject_looks
from ropectl.report.figures.drawing import Canvas, Drawing, drawing
from ropectl.report.figures.frequencies import frequency_panels
from ropectl.report.figures.subjects import Evidence, Subject
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import short_spec
from ropectl.rope.registry import parse_method


def pair_drawings(evidence: Evidence) -> list[Drawing]:
    """Returns one figure of all methods that change a frequency; nothing where the geometry is not known."""
    geometry = evidence.geometry
    if geometry is None:
        return []
    target = evidence.target_length or geometry.original_max_position_embeddings
    first: dict[str, Subject] = {}
    for subject in evidence.subjects:
        first.setdefault(subject.method, subject)
    found = {s.name: record for s in first.values() if (record := _inspected(s.method, geometry, target))}
    if not found:
        return []
    styles = subject_looks(evidence.subjects)

    def paint(canvas: Canvas) -> None:
        upper, lower = canvas.panels([1.35, 1.8], share_x=True)
        # A training changes no frequency: one look a method.
        looks = [
            {**styles[name].line, "linewidth": 1.2, "marker": styles[name].marker, "markersize": 2.6} for name in found
        ]
        handles = frequency_panels(upper, lower, list(found.values()), geometry, target, looks)
        canvas.legend(list(zip(["as trained", *map(_label, found.values())], handles, strict=True)))

    length = geometry.original_max_position_embeddings
    caption = (
        f"What each method does to each rotary pair (computed, not measured): above, how much slower it turns than in "
        f"training; below, tokens a full turn takes. Shaded: a full turn within the trained length, {length} tokens. "
        "Methods that follow the length are frozen at the target."
    )
    return [drawing("pairs", "Divisor and wavelength per pair", caption, paint)]


def _label(record: InspectionRecord) -> str:
    still = sum(value is None for value in record.wavelengths)
    return short_spec(record.method) + (f", {still} pairs stand still" if still else "")


def _inspected(spec: str, geometry: RopeGeometry, target: int) -> InspectionRecord | None:
    """What the formulas say about a method; None for the unscaled model and for a spec that means nothing here.

    A record never makes a file be read: specs in records have their lists written out.
    """
    if spec == "none" or "@" in spec:
        return None
    try:
        method = parse_method(spec)
        return inspect_rope(geometry, method, target if method.depends_on_seq_len else None)
    except (ConfigError, ArithmeticError, ValueError):
        return None
