"""Methods as data, for listings, documentation and other programs."""

from __future__ import annotations

import inspect
from typing import Any

from ropectl.rope.method import ScalingMethod
from ropectl.specs import describe_parameter


def describe_method(kind: type[ScalingMethod]) -> dict[str, Any]:
    """Returns all that is published about a method, as JSON values."""
    return {
        "name": kind.name,
        "title": kind.title,
        "summary": inspect.getdoc(kind),
        "formula": kind.formula,
        "parameters": [describe_parameter(name, field) for name, field in kind.model_fields.items()],
        "depends_on_seq_len": kind.varies_with_length,
        "reference": str(kind.reference),
        "native": kind.native,
    }
