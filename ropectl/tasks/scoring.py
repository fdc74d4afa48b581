"""Scores generated answers."""

from __future__ import annotations

from collections.abc import Sequence


def contained_share(text: str, references: Sequence[str]) -> float:
    """Returns the share of the references that stand in the text, letter case aside, in [0, 1].

    The rule of RULER (arXiv 2404.06654) for every task that asks for several things: order, and what
    else is said, do not matter.
    """
    text = text.lower()
    return sum(reference.lower() in text for reference in references) / len(references)
