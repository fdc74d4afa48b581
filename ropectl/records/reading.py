"""Reads records: recognises their kind, and checks in one place that every value has its type and is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ropectl.errors import ConfigError
from ropectl.records.bounds import REASONS
from ropectl.records.comparison_record import ComparisonRecord
from ropectl.records.harness_record import HarnessRecord
from ropectl.records.inspection_record import InspectionRecord
from ropectl.records.json_form import key_of
from ropectl.records.passkey_record import PasskeyRecord
from ropectl.records.patch_record import FinetuneRecord
from ropectl.records.perplexity_record import PerplexityRecord
from ropectl.records.runtime.runtime_check_record import RuntimeCheckRecord
from ropectl.records.tasks_record import TasksRecord
from ropectl.records.training_record import UnfinishedTraining

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

AnyRecord = (
    ComparisonRecord
    | PerplexityRecord
    | PasskeyRecord
    | TasksRecord
    | InspectionRecord
    | FinetuneRecord
    | HarnessRecord
    | RuntimeCheckRecord
    | UnfinishedTraining
)

#: Records that a report can be made of, in the order in which they are recognised.
KINDS: tuple[type[AnyRecord], ...] = (
    ComparisonRecord,
    PerplexityRecord,
    PasskeyRecord,
    TasksRecord,
    InspectionRecord,
    FinetuneRecord,
    HarnessRecord,
    RuntimeCheckRecord,
    UnfinishedTraining,
)

R = TypeVar("R")


def read_record(json: Mapping[str, Any], place: str) -> AnyRecord:
    """Returns the record that a JSON object is; keys that its type does not know are ignored.

    Args:
        json: The object.
        place: Where it was found, for messages.

    Raises:
        ConfigError: If it is not a record with results, or something in it is missing, of another type, or impossible.
    """
    kind = kind_of(json, place)
    return read_as(kind, json, place, kind.written_by)


def kind_of(json: Mapping[str, Any], place: str) -> type[AnyRecord]:
    """Returns which record a JSON object is.

    Raises:
        ConfigError: If it is not a record, or has no results.
    """
    for kind in KINDS:
        if kind.known_by <= json.keys():
            return kind
    if json.get("estimate") or "plan" in json:
        raise ConfigError(
            f"{place} is the estimate of a dry run: there are no results in it.", "Run it without --dry-run."
        )
    raise ConfigError(
        f"{place} is not a record that a report can be made from.",
        f"A report can be made from records of: {', '.join(dict.fromkeys(kind.written_by for kind in KINDS))}.",
    )


def read_as(kind: type[R], json: Any, place: str, command: str) -> R:
    """Returns a JSON value as an object of a type of this package.

    Args:
        kind: The type.
        json: The value.
        place: Where it was found, for messages.
        command: The command that writes it.

    Raises:
        ConfigError: Naming what is missing, of another type, or impossible.
    """
    from pydantic import ValidationError

    try:
        record: R = adapter(cast(Any, kind)).validate_python(_by_field(kind, json))
        return record
    except ValidationError as error:
        problem = _problem(error.errors()[0])
    except ConfigError as error:  # numbers that no geometry can have
        problem = f"its geometry is wrong: {error.message.rstrip('.')}"
    raise ConfigError(
        f"{place} looks like a record of {command}, but {problem}.",
        f"Was it cut short or edited? ropectl {command} writes it again.",
    )


def _by_field(kind: Any, json: Any) -> Any:
    """Returns a JSON object with the names of fields in place of the few keys that cannot be Python names."""
    names = {key_of(one): one.name for one in fields(kind) if key_of(one) != one.name}
    return {names.get(key, key): value for key, value in json.items()} if names and isinstance(json, dict) else json


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Returns what checks values of a type, and knows its JSON Schema."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _problem(error: ErrorDetails) -> str:
    """Returns what is wrong, and where."""
    where = [str(part) for part in error["loc"]]
    names = [name for name in where if not name.isdigit()]
    is_bound = error["type"] in ("greater_than", "greater_than_equal", "less_than_equal")
    if is_bound and names and names[-1] in REASONS:
        return f"{'.'.join(where)} is {error['input']:g}: {REASONS[names[-1]]}"
    return f"{'.'.join(where) or 'it'} is wrong: {error['msg']}"
