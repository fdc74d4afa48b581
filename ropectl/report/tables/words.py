"""The spelling of lengths, methods, models and numbers, in every table and on the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ropectl.lengths import format_length
from ropectl.records import NO_CHANGE, MethodRow
from ropectl.report.document import BAD, GOOD, Cell, Sentence
from ropectl.rope.method import short_spec

NOT_AVAILABLE = "n/a"
BEYOND_MARK = "*"

#: What the mark means, and an open marker in a figure.
PAST = "past the length that the method is made for"

#: Shown as the length if none of the evaluated ones qualifies.
NONE_MARK = "-"

#: After a difference that is none for all that is known.
SAME_MARK = "="

#: After a length past which a verdict is open.
OPEN_MARK = "?"

#: Appended to the name of a method that was trained.
TUNED = ", tuned"

#: Relative changes of perplexity above this are coloured.
VISIBLE_CHANGE = 0.005


def length_head(length: int, trained: int | None) -> str:
    """Returns the heading of a length's column; the trained length is marked.

    Args:
        length: Context [tokens].
        trained: L [tokens]; None if models differ in it.
    """
    return f"{format_length(length)} (L)" if length == trained else format_length(length)


def worst_head(lengths: Iterable[int], trained: int | None) -> str:
    """Returns the heading of the worst change at the measured lengths up to the trained one: L only if it was measured.

    Args:
        lengths: The measured ones [tokens].
        trained: L [tokens].
    """
    longest = max((length for length in lengths if trained is not None and length <= trained), default=trained)
    return "worst up to L" if longest is None or longest == trained else f"worst up to {format_length(longest)}"


def beyond_mark(beyond: bool) -> str:
    """Returns the footnote mark of what was measured past the length that the method is made for.

    It stands after the length where a table is about one method, and after the number where methods share the lengths.
    """
    return BEYOND_MARK if beyond else ""


def beyond_legend(*marks: Iterable[bool]) -> list[Sentence]:
    """Returns what the mark after a number means, if one of them has it."""
    text = f"{BEYOND_MARK} {PAST}"
    return [Sentence(text, concerns=[BEYOND_MARK])] if any(map(any, marks)) else []


def perplexity_text(value: float | None) -> str:
    """Returns a perplexity with three significant digits or more, never rounded to fewer than it has."""
    if value is None:
        return NOT_AVAILABLE
    if value >= 1e5:
        return f"{value:.2e}"
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def perplexity_interval(low: float | None, high: float | None) -> str:
    """Returns the 95 % interval of a perplexity."""
    return NOT_AVAILABLE if low is None or high is None else f"{perplexity_text(low)} to {perplexity_text(high)}"


def ends_text(low: float | None, high: float | None, text: Callable[[float], str]) -> tuple[str, str] | None:
    """Returns the ends of an interval in the form of its number; None if there is none."""
    return None if low is None or high is None else (text(low), text(high))


def bits_text(value: float | None) -> str:
    """Returns bits per byte as text."""
    return NOT_AVAILABLE if value is None else f"{value:.3f}"


def share_text(value: float | None, digits: int = 0) -> str:
    """Returns a share in per cent."""
    return NOT_AVAILABLE if value is None else f"{value:.{digits}%}"


def change_text(value: float | None) -> str:
    """Returns a relative change with its sign."""
    if value is None or math.isnan(value):
        return NOT_AVAILABLE
    return f"{0.0 if abs(value) < NO_CHANGE else value:+.1%}"  # a rounding difference between passes gets no sign


def change_tone(value: float | None) -> str:
    """Returns whether a relative change of perplexity is good or bad; small ones are neither."""
    if value is None or math.isnan(value) or abs(value) <= VISIBLE_CHANGE:
        return ""
    return BAD if value > 0 else GOOD


def change_cell(value: float | None) -> Cell:
    """Returns a relative change of perplexity as the entry of a table."""
    return Cell(change_text(value), tone=change_tone(value), value=value)


def count_text(value: float | None) -> str:
    """Returns a count in groups of three digits."""
    return NOT_AVAILABLE if value is None else f"{value:,}"


def span(values: Iterable[int], text: Callable[[int], str] = str) -> str:
    """Returns the least and the greatest of some numbers in words, or the only one."""
    low, high = min(found := list(values)), max(found)
    return text(low) if low == high else f"{text(low)} to {text(high)}"


def size_text(num_bytes: float) -> str:
    """Returns a number of bytes with a unit such as ``GB``."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} bytes"


def setting_text(value: Any) -> str:
    """Returns the value of a setting as it is typed."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or NONE_MARK
    return NONE_MARK if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def short_names(specs: Sequence[str]) -> dict[str, str]:
    """Returns the name of each method in a table: its bare name if that is unique, else its spec."""
    specs = list(dict.fromkeys(specs))
    names = [spec.partition(":")[0] for spec in specs]
    return {spec: name if names.count(name) == 1 else short_spec(spec) for spec, name in zip(specs, names, strict=True)}


def row_names(rows: Sequence[MethodRow]) -> list[str]:
    """Returns the name of each row of a comparison: its method and whether it was trained; for other models, the model too."""
    first = rows[0].model
    names = short_names([row.method for row in rows if row.model == first])
    models = model_names([row.model for row in rows])
    called = []
    for row in rows:
        if row.model == first:
            called.append(names[row.method] + (TUNED if row.training else ""))
        else:
            called.append(f"{models[row.model]} ({row.method.partition(':')[0]})")
    return called


def model_names(models: Sequence[str]) -> dict[str, str]:
    """Returns a short name for each model: the last part of its place, with as many before it as make it unique."""
    parts = {model: model.rstrip("/").split("/") for model in models}
    count = 1
    while count < max(map(len, parts.values())) and len({tuple(p[-count:]) for p in parts.values()}) < len(parts):
        count += 1
    return {model: "/".join(names[-count:]) for model, names in parts.items()}


def sentences(parts: Iterable[str]) -> str:
    """Returns what records say as sentences in a row: each begins with a capital and has an end.

    A first word that is not a plain word, such as the name of a method with a hyphen, stays as it is written.
    """
    return " ".join(_sentence(part) for part in map(str.strip, parts) if part)


def _sentence(text: str) -> str:
    first = text.partition(" ")[0].rstrip(",.:;")
    if first.isalpha() and first.islower():
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else f"{text}."
