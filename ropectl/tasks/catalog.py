"""Tasks as data, for listings, documentation and other programs."""

from __future__ import annotations

import inspect
from typing import Any

from ropectl.specs import describe_parameter
from ropectl.tasks.task import RetrievalTask


def describe_task(kind: type[RetrievalTask]) -> dict[str, Any]:
    """Returns all that is published about a task, as JSON values."""
    return {
        "name": kind.name,
        "title": kind.title,
        "summary": inspect.getdoc(kind),
        "measures": kind.measures,
        "metric": kind.metric,
        "has_depths": kind.has_depths,
        "chance": kind().chance,
        "parameters": [describe_parameter(name, field) for name, field in kind.model_fields.items()],
        "reference": str(kind.reference),
    }
