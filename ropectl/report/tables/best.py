"""Which numbers of a column are its best: one answer for the terminal, the page, LaTeX and Markdown.

Reach is not ranked: it is shown against the target instead.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence


def best_marks(
    texts: Sequence[str],
    values: Sequence[float | None],
    keys: Sequence[Hashable] | None = None,
    *,
    smallest: bool = True,
) -> list[bool]:
    """Returns which entries of a column are its best: those that read as the best one does.

    A text that more than half of the rows share does not tell them apart and is not marked.

    Args:
        texts: How the entries read.
        values: Their values; None or not finite where there is none.
        keys: Entries with equal keys compare, and each such group has a best of its own; None where all compare.
        smallest: Whether less is better.
    """
    result = [False] * len(texts)
    keys = [None] * len(texts) if keys is None else keys
    for key in dict.fromkeys(keys):
        group = [index for index, each in enumerate(keys) if each == key]
        best = _best_text([texts[i] for i in group], [values[i] for i in group], smallest)
        for index in group:
            result[index] = texts[index] == best
    return result


def _best_text(texts: Sequence[str], values: Sequence[float | None], smallest: bool) -> str | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return None
    text = texts[list(values).index(min(known) if smallest else max(known))]
    return text if 2 * sum(each == text for each in texts) <= len(known) else None
