"""Makes the figures of a record. A new kind is a function and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ropectl.records.reading import AnyRecord
from ropectl.report.figures.by_length import passkey_curves, perplexity_drawings, position_drawings, task_drawings
from ropectl.report.figures.costs import cost_drawings
from ropectl.report.figures.drawing import Drawing
from ropectl.report.figures.evidence import evidence_of, evidence_of_runs
from ropectl.report.figures.frequencies import pair_drawings
from ropectl.report.figures.passkeys import passkey_maps
from ropectl.report.figures.subjects import Evidence
from ropectl.report.figures.training import training_drawings

__all__ = ["Drawing", "drawings_of", "drawings_of_runs", "training_drawings"]

#: The kinds of figures in the order in which they are shown; each returns none where a record has nothing to draw.
KINDS: tuple[Callable[[Evidence], list[Drawing]], ...] = (
    perplexity_drawings,
    position_drawings,
    passkey_maps,
    passkey_curves,
    cost_drawings,
    task_drawings,
    pair_drawings,
)


def drawings_of(record: AnyRecord) -> list[Drawing]:
    """Returns the figures of a result record of any kind; none where nothing in it can be drawn."""
    return _drawings(evidence_of(record))


def drawings_of_runs(records: Mapping[str, AnyRecord]) -> list[Drawing]:
    """Returns the figures of several records in shared panels, each curve named after its run.

    Args:
        records: By the name of the run.
    """
    return _drawings(evidence_of_runs(records))


def _drawings(evidence: Evidence) -> list[Drawing]:
    return [drawing for kind in KINDS for drawing in kind(evidence)]
