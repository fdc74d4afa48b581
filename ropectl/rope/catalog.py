"""Describes methods as data, for listings, documentation and other programs."""

from __future__ import annotations

import inspect
from typing import Any

from ropectl.rope.method import ScalingMethod
from ropectl.rope.profile import divisor_profile
from ropectl.specs import Parameter, describe_parameter


def describe_method(kind: type[ScalingMethod]) -> dict[str, Any]:
    """Returns all that is published about a method, as JSON values; ``guide`` is None where it has none."""
    profile = divisor_profile(kind)
    return {
        "name": kind.name,
        "title": kind.title,
        "summary": inspect.getdoc(kind),
        "formula": kind.formula,
        "parameters": [vars(parameter) for parameter in parameters_of(kind)],
        "depends_on_seq_len": kind.varies_with_length,
        "reference": str(kind.reference),
        "native": kind.native,
        "guide": None if kind.guide is None else kind.guide.to_json(),
        "profile": None if profile is None else profile.to_json(),
    }


def parameters_of(kind: type[ScalingMethod]) -> list[Parameter]:
    """Returns what is published about each parameter of a method."""
    return [describe_parameter(name, field) for name, field in kind.model_fields.items()]
