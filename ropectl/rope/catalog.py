"""Methods as data, for listings, documentation and other programs."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic.fields import FieldInfo

from ropectl.rope.method import ScalingMethod, describe_range


def describe_method(kind: type[ScalingMethod]) -> dict[str, Any]:
    """Returns all that is published about a method, as JSON values."""
    return {
        "name": kind.name,
        "title": kind.title,
        "summary": inspect.getdoc(kind),
        "formula": kind.formula,
        "parameters": [_describe_parameter(name, field) for name, field in kind.model_fields.items()],
        "depends_on_seq_len": kind.varies_with_length,
        "reference": str(kind.reference),
        "native": kind.native,
    }


def _describe_parameter(name: str, field: FieldInfo) -> dict[str, Any]:
    extra = field.json_schema_extra
    return {
        "name": name,
        "required": field.is_required(),
        "default": None if field.is_required() else field.default,
        "help": field.description,
        "unit": extra.get("unit") if isinstance(extra, dict) else None,
        "allowed": describe_range(field) or None,
    }
