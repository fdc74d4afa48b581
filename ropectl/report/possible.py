"""What measured numbers cannot be: a record with one that is impossible was edited or damaged, and is not shown as if it were true."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: Least and greatest value of what has such a name in a record, wherever it stands; and in words.
BOUNDS: Mapping[str, tuple[float, float, str]] = {
    "perplexity": (math.ulp(0.0), math.inf, "a perplexity is more than 0"),
    "accuracy": (0.0, 1.0, "an accuracy is between 0 and 1"),
    "score": (0.0, 1.0, "a score is between 0 and 1"),
    "bits_per_byte": (0.0, math.inf, "bits per byte are not less than 0"),
}

#: What was asked for and how, which is no measurement.
_NOT_MEASURED = frozenset({"manifest", "settings", "command"})


def first_impossible(record: Mapping[str, Any]) -> str | None:
    """Returns where the first impossible number of a record stands, and why it is one; None if there is none."""
    return _in(record, "", None)


def _in(value: Any, place: str, bounds: tuple[float, float, str] | None) -> str | None:
    if isinstance(value, Mapping):
        entries = [(str(key), item) for key, item in value.items() if key not in _NOT_MEASURED]
    elif isinstance(value, list):
        entries = [(str(index), item) for index, item in enumerate(value)]
    else:
        is_wrong = bounds and _is_number(value) and not bounds[0] <= value <= bounds[1]
        return f"{place} is {value:g}: {bounds[2]}" if bounds and is_wrong else None
    for key, item in entries:
        # A length under a name, as in the validations of a training, is of the name's kind; a field of its own is not.
        of = BOUNDS.get(key, bounds if key.isdigit() and not isinstance(item, Mapping) else None)
        found = _in(item, f"{place}.{key}" if place else key, of)
        if found:
            return found
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
