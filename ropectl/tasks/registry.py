"""The registry of retrieval tasks: finds them, reads task specs, and describes tasks for listings and documentation.

Every module in ``ropectl/tasks/kinds`` is scanned, and every module that an installed package names under the
entry-point group ``ropectl.tasks``. A task spec is ``NAME[:KEY=VALUE,...]``, for example
``multi-key:distractors=7``.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

from ropectl.discovery import find_classes
from ropectl.specs import Parameter, describe_parameter, split_spec
from ropectl.tasks import kinds
from ropectl.tasks.task import RetrievalTask

ENTRY_POINT_GROUP = "ropectl.tasks"

#: This one comes first in lists: it is the easiest.
FIRST = "passkey"


@cache
def all_tasks() -> dict[str, type[RetrievalTask]]:
    """Returns every known task by name.

    Raises:
        ConfigError: If two tasks share a name.
    """
    found = find_classes(kinds, RetrievalTask, ENTRY_POINT_GROUP, "tasks")  # type: ignore[type-abstract]
    return dict(sorted(found.items(), key=lambda item: item[0] != FIRST))


def parse_task(spec: str) -> RetrievalTask:
    """Returns the task that a spec names.

    Raises:
        ConfigError: If the task is unknown, with the nearest names, or the spec is malformed or out of range.
    """
    known = all_tasks()
    name, parameters = split_spec(spec, "task", known)
    return known[name].create(dict(parameters))


def parse_tasks(specs: Sequence[str]) -> list[RetrievalTask]:
    """Returns the tasks that specs name, each once; if none is named, every task with its defaults.

    Raises:
        ConfigError: If a spec is wrong.
    """
    tasks = [parse_task(spec) for spec in specs or all_tasks()]
    return list(dict.fromkeys(tasks))


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
        "parameters": [vars(parameter) for parameter in parameters_of(kind)],
        "reference": str(kind.reference),
    }


def parameters_of(kind: type[RetrievalTask]) -> list[Parameter]:
    """Returns what is published about each parameter of a task."""
    return [describe_parameter(name, field) for name, field in kind.model_fields.items()]
