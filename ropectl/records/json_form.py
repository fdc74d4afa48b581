"""Records as plain JSON values, under the keys and in the order in which their types declare them."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass
from typing import Any

_OPTIONAL = "optional"


def optional(beside: str = "") -> Any:
    """Declares a field that only some records have: where it is None, its key is left out of the JSON.

    Args:
        beside: Name of the field that decides instead, for a field that may be None and still stand there.
    """
    return field(default=None, metadata={_OPTIONAL: beside})


def to_json(record: Any) -> dict[str, Any]:
    """Returns a record as plain JSON values."""
    written: dict[str, Any] = _plain(record)
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "to_json"):
        return value.to_json()
    if not is_dataclass(value):
        return value
    return {
        one.name: _plain(getattr(value, one.name))
        for one in fields(value)
        if _is_written(value, one.name, one.metadata)
    }


def _is_written(record: Any, name: str, metadata: Any) -> bool:
    beside = metadata.get(_OPTIONAL)
    return beside is None or getattr(record, beside or name) is not None
