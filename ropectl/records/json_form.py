"""Records as plain JSON values, under the keys and in the order in which their types declare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, field, fields, is_dataclass
from typing import Any

_OPTIONAL, _KEY = "optional", "key"


def optional(beside: str = "", key: str = "", empty: Callable[[], Any] | None = None) -> Any:
    """Declares a field that only some records have: if it is None, its key is left out of the JSON.

    Args:
        beside: Name of the field that decides instead, for a field that may be written as null, or is never None.
        key: The key, where it cannot be the name of a field.
        empty: Makes the value where there is none; None where it is None.
    """
    metadata = {_OPTIONAL: beside, _KEY: key}
    return field(default=None, metadata=metadata) if empty is None else field(default_factory=empty, metadata=metadata)


def key_of(one: Field[Any]) -> str:
    """Returns the JSON key of a field."""
    key: str = one.metadata.get(_KEY) or one.name
    return key


def to_json(record: Any) -> dict[str, Any]:
    """Returns a record as plain JSON values."""
    written: dict[str, Any] = _plain(record)
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "to_json"):
        return value.to_json()
    if not is_dataclass(value):
        return value
    written = (one for one in fields(value) if _is_written(value, one))
    return {key_of(one): _plain(getattr(value, one.name)) for one in written}


def _is_written(record: Any, one: Field[Any]) -> bool:
    beside = one.metadata.get(_OPTIONAL)
    return beside is None or getattr(record, beside or one.name) is not None
