"""Specs, ``NAME[:KEY=VALUE,...]``: one grammar for whatever is chosen by name and set by parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ropectl.errors import ConfigError
from ropectl.names import near_names

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo


#: What pydantic could not make of a value, in our words, by the beginning of its name for the failure.
NO_SUCH_TYPE = {
    "int": "it is not a whole number",
    "float": "it is not a number",
    "finite": "it is not a finite number",
    "bool": "it is neither true nor false",
    "string": "it is not a text",
    "tuple": "it is not a list",
    "path": "it is not a path",
}


def split_spec(
    spec: str, noun: str, example: str, error: type[ConfigError] = ConfigError
) -> tuple[str, dict[str, str]]:
    """Returns the name in a spec and its parameters as they are written.

    Args:
        spec: ``NAME[:KEY=VALUE,...]``.
        noun: What the spec is of, for messages.
        example: A spec to show.
        error: Raised where the spec is malformed.
    """
    name, _, rest = spec.strip().partition(":")
    parameters: dict[str, str] = {}
    for pair in filter(None, rest.split(",")):
        key, separator, value = (part.strip() for part in pair.partition("="))
        if not separator or not key or not value:
            raise error(
                f"{pair!r} in the {noun} spec {spec!r} is not KEY=VALUE.",
                f"A spec is NAME[:KEY=VALUE,...], as in {example}",
            )
        if key in parameters:
            raise error(f"{key} stands twice in the {noun} spec {spec!r}.")
        parameters[key] = value
    return name.strip(), parameters


def format_value(value: Any) -> str:
    """Returns a parameter's value as it is written in a spec: shortest exact form, lists joined by colons."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, tuple | list):
        return ":".join(format_value(item) for item in value)
    return str(value)


def format_spec(name: str, parameters: Mapping[str, Any]) -> str:
    """Returns the spec that a name and its parameters make."""
    pairs = ",".join(f"{key}={format_value(value)}" for key, value in parameters.items())
    return f"{name}:{pairs}" if pairs else name


def describe_range(field: FieldInfo) -> str:
    """Returns the values a parameter may take, in words."""
    words = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}
    bounds = [
        f"{text} {getattr(rule, key):g}" for rule in field.metadata for key, text in words.items() if hasattr(rule, key)
    ]
    return " and ".join(bounds)


def explain(
    kind: type[BaseModel],
    spec_name: str,
    error: ValidationError,
    parameters: dict[str, Any],
    example: Callable[[str], str],
) -> tuple[str, str]:
    """Returns pydantic's most telling complaint as message and hint.

    Args:
        kind: What could not be made.
        spec_name: Its name in a spec.
        error: The complaint.
        parameters: As they were given.
        example: Returns what to type to give a missing parameter.
    """
    errors = sorted(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
    first = errors[0]
    if not first["loc"]:  # a rule over several parameters; its text is ours
        return f"{spec_name}: {first['msg'].removeprefix('Value error, ')}", ""
    name = str(first["loc"][0])
    known = ", ".join(kind.model_fields) or "none"
    if first["type"] == "extra_forbidden":
        near = near_names(name, kind.model_fields)
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        return f"{spec_name} has no parameter {name!r}.", f"{meant}Its parameters: {known}."
    if first["type"] == "missing":
        return f"{spec_name} needs {name} ({kind.model_fields[name].description}).", example(name)
    allowed = describe_range(kind.model_fields[name])
    detail = first["msg"][0].lower() + first["msg"][1:]
    detail = f"must be finite and {allowed}" if allowed else detail
    if first["type"] != "finite_number":
        detail = next((text for start, text in NO_SUCH_TYPE.items() if first["type"].startswith(start)), detail)
    return f"{spec_name}: {name} = {parameters.get(name)} is not possible: {detail}.", ""


def describe_parameter(name: str, field: FieldInfo) -> dict[str, Any]:
    """Returns a parameter as JSON values: name, default, meaning, unit and what is allowed."""
    extra = field.json_schema_extra
    return {
        "name": name,
        "required": field.is_required(),
        "default": None if field.is_required() else field.default,
        "help": field.description,
        "unit": extra.get("unit") if isinstance(extra, dict) else None,
        "allowed": describe_range(field) or None,
    }
