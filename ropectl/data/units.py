"""The units of text that a record's losses are of, in words: documents, or windows that they were cut into."""

from __future__ import annotations

from collections.abc import Sequence


def unit_name(split: int | None) -> str:
    """Returns what a unit is, in the singular.

    Args:
        split: Tokens of a window; None where whole documents were scored.
    """
    return "document" if split is None else "window"


def scored_units(count: int, split: int | None, clusters: Sequence[int]) -> str:
    """Returns what was scored: ``12 documents``, or ``36 windows of 1 document``.

    Args:
        count: Units.
        split: Tokens of a window; None where whole documents were scored.
        clusters: Index of the document of each; empty where each is a document of its own.
    """
    units = counted(count, unit_name(split))
    return units if split is None else f"{units} of {counted(len(set(clusters)) or count, 'document')}"


def drawn_unit(split: int | None, clusters: Sequence[int]) -> str:
    """Returns what intervals are over, in the singular: documents with all their windows, or the windows of a single one.

    Args:
        split: Tokens of a window; None where whole documents were scored.
        clusters: Index of the document of each unit; empty where each is a document of its own.
    """
    return "window" if split is not None and len(set(clusters)) == 1 else "document"


def counted(count: int, name: str) -> str:
    """Returns a count with its noun, in the plural unless there is one."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"
