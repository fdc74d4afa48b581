"""Which numbers of a comparison are the best of their column: one answer for terminal, page, LaTeX and Markdown.

Reach is not ranked: every format shows it against the target instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.layout import NOT_AVAILABLE
from ropectl.report.tables import perplexity_text


def best_marks(texts: Sequence[str], values: Sequence[float | None], smallest: bool) -> list[bool]:
    """Returns which entries of a column are its best: those that read as the best one does.

    What more than half of the rows share tells nobody apart and is not marked.

    Args:
        texts: How the entries read.
        values: Their values; None or not finite where there is none.
        smallest: Whether less is better.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return [False] * len(texts)
    text = texts[list(values).index(min(known) if smallest else max(known))]
    if 2 * sum(each == text for each in texts) > len(known):
        return [False] * len(texts)
    return [each == text for each in texts]


def best_perplexities(record: Mapping[str, Any], length: int) -> list[bool]:
    """Returns which rows of a comparison have the best perplexity at a length.

    Perplexities of other tokens do not compare: where models differ in them, the best is one of each model's own.
    """
    values = _values(record, length, "perplexity")
    texts = [perplexity_text(value) for value in values]
    if record.get("same_tokens", True):
        return best_marks(texts, values, smallest=True)
    models = [row.get("model") for row in record["rows"]]
    result = [False] * len(models)
    for model in dict.fromkeys(models):
        own = [index for index, each in enumerate(models) if each == model]
        marks = best_marks([texts[i] for i in own], [values[i] for i in own], smallest=True)
        for index, mark in zip(own, marks, strict=True):
            result[index] = mark
    return result


def best_bits(record: Mapping[str, Any], length: int) -> list[bool]:
    """Returns which rows have the fewest bits per byte at a length, which compare whatever the tokens are."""
    values = _values(record, length, "bits_per_byte")
    return best_marks([bits_text(value) for value in values], values, smallest=True)


def best_passkeys(record: Mapping[str, Any], length: int) -> list[bool]:
    """Returns which rows found the most passkeys at a length."""
    found = [next((each for each in row["passkey"] if each["length"] == length), None) for row in record["rows"]]
    texts = [NOT_AVAILABLE if each is None else str(each["correct"]) for each in found]
    return best_marks(texts, [None if each is None else each["correct"] for each in found], smallest=False)


def bits_text(value: float | None) -> str:
    """Returns how bits per byte read."""
    return NOT_AVAILABLE if value is None else f"{value:.3f}"


def _values(record: Mapping[str, Any], length: int, name: str) -> list[float | None]:
    points = [
        next((each for each in row["perplexity"] if each["context_length"] == length), None) for row in record["rows"]
    ]
    return [None if point is None else point[name] for point in points]
