"""What a table counts and what its intervals are, in sentences: for captions of tables that stand alone."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.data.units import drawn_unit, scored_units
from ropectl.records import Difference, PasskeyLength, PerplexityPoint
from ropectl.report.tables.words import count_text, span

#: What the three lengths are.
REACH = (
    "computes: the longest context whose rotations were all seen in training, by arithmetic; models: the length up to which "
    "the same text is predicted as well as by the unscaled model at L; uses: the length up to which passkeys are retrieved."
)

#: Where the intervals of a table are.
IN_BRACKETS, IN_COLUMN = "in brackets the 95 % interval", "95 % intervals"


def scored(
    points: Sequence[PerplexityPoint], split: int | None, clusters: Sequence[int], intervals: str = IN_BRACKETS
) -> str:
    """Returns how many documents or windows, and how many tokens, perplexities are of.

    Args:
        points: The perplexities.
        split: Tokens of a window; None where whole documents were scored.
        clusters: Index of the document of each window; empty where each is a document of its own.
        intervals: Where the table shows their intervals; empty if it does not.
    """
    known = [point for point in points if point.num_tokens]
    if not known:
        return ""
    least, most = min(found := [point.num_documents for point in known]), max(found)
    units = ("" if least == most else f"{least:,} to ") + scored_units(most, split, clusters)
    tokens = span((point.num_tokens for point in known), count_text)
    text = f"n = {units}, {tokens} scored tokens a length"
    return f"{text}{intervals and f'; {intervals} over {drawn_unit(split, clusters)}s'}."


def asked(entries: Sequence[PasskeyLength]) -> str:
    """Returns how many prompts shares are of."""
    if not entries:
        return ""
    depths = {len(entry.depths) for entry in entries if entry.depths}
    text = f"n = {span((entry.trials for entry in entries), count_text)} prompts of filler text a length"
    if depths:
        text += f", at {span(depths)} depth{'' if depths == {1} else 's'}"
    return f"{text}; in brackets Wilson's 95 % interval of the share that is answered rightly."


def compared(differences: Sequence[Difference], unit: str) -> str:
    """Returns how many pairs differences of one measure are of.

    Args:
        differences: The differences.
        unit: What is paired, in the singular.
    """
    return f"n = {span((one.units for one in differences), count_text)} pairs of {unit}s a length."
