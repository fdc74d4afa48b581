"""Specs, ``NAME[:KEY=VALUE,...]``: one grammar for everything that has a name and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropectl.errors import ConfigError
from ropectl.names import near_names
from ropectl.printable import printable, shorten, shown

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo


#: Messages for values of the wrong type, by the beginning of pydantic's name for the failure.
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
        noun: The kind of thing that it names, for messages.
        example: A spec to show.
        error: The error raised where the spec is malformed.
    """
    name, colon, rest = spec.strip().partition(":")
    hint = f"A spec is NAME[:KEY=VALUE,...], as in {example}"
    check_typing(spec.strip(), f"the {noun} spec", error)
    return name.strip(), split_pairs(rest, f"the {noun} spec {shown(spec)}", hint, error, f"{name}:") if colon else {}


def split_pairs(
    text: str, whole: str, hint: str, error: type[ConfigError] = ConfigError, before: str = ""
) -> dict[str, str]:
    """Returns the values of ``KEY=VALUE,...`` by key, as they are written.

    Args:
        text: The pairs.
        whole: What they are part of, for messages.
        hint: What to type where a pair is none.
        error: The error raised where the text is malformed.
        before: What stands before them, for what to type where a comma is too many.
    """
    pairs = [pair.strip() for pair in text.split(",")]
    if not all(pairs):
        kept = before + ",".join(filter(None, pairs))
        raise error(
            f"{whole[0].upper()}{whole[1:]} has an empty part: a colon or comma too many.",
            f"Type: {shorten(kept.rstrip(':'))}",
        )
    parameters: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = (part.strip() for part in pair.partition("="))
        if not separator or not key or not value:
            raise error(f"{shown(pair)} in {whole} is not KEY=VALUE.", hint)
        if key in parameters:
            raise error(f"{key} is given twice in {whole}.", "Keep one of them.")
        parameters[key] = value
    return parameters


def check_typing(text: str, what: str, error: type[ConfigError] = ConfigError) -> None:
    """Refuses line breaks and other control characters, which nobody types and which hide in copied text.

    Args:
        text: What was typed.
        what: Its kind, for the message.
        error: The error raised.
    """
    clean = "".join(character for character in text if printable(character) == character)
    if clean != text:
        raise error(
            f"{what[0].upper()}{what[1:]} {shown(text)} has a line break or another control character in it.",
            f"Type: {shorten(clean)}",
        )


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


@dataclass(frozen=True)
class Fault:
    """The most helpful of the faults that pydantic found.

    Attributes:
        name: The field; None for a rule over several.
        problem: A message of ours about it.
        is_unknown: Whether there is no such field.
        is_missing: Whether the field has no default and was not given.
    """

    name: str | None
    problem: str
    is_unknown: bool = False
    is_missing: bool = False

    @classmethod
    def of(cls, kind: type[BaseModel], error: ValidationError) -> Fault:
        """Returns the fault: an unknown field before all others, since it may be a misspelt one.

        Args:
            kind: The type that could not be created.
            error: The complaint.
        """
        first = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
        problem = str(first["msg"]).removeprefix("Value error, ")
        if not first["loc"]:
            return cls(None, problem)
        name, failure = str(first["loc"][0]), first["type"]
        field = kind.model_fields.get(name)
        allowed = describe_range(field) if field is not None else ""
        detail = next((text for start, text in NO_SUCH_TYPE.items() if failure.startswith(start)), None)
        if failure.startswith(("greater_than", "less_than")) and allowed:
            detail = f"it must be {allowed}"
        return cls(name, detail or problem[0].lower() + problem[1:], failure == "extra_forbidden", failure == "missing")


def explain(
    kind: type[BaseModel],
    spec_name: str,
    error: ValidationError,
    parameters: dict[str, Any],
    example: Callable[[str], str],
) -> tuple[str, str]:
    """Returns the most helpful complaint about the parameters of a spec, as message and hint.

    Args:
        kind: The type that could not be created.
        spec_name: Its name in a spec.
        error: The complaint.
        parameters: The parameters as they were given.
        example: Returns what to type to give a missing parameter.
    """
    fault = Fault.of(kind, error)
    if fault.name is None:
        return f"{spec_name}: {fault.problem}", ""
    if fault.is_unknown:
        near = near_names(fault.name, kind.model_fields)
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        known = ", ".join(kind.model_fields) or "none"
        return f"{spec_name} has no parameter {fault.name!r}.", f"{meant}Its parameters: {known}."
    if fault.is_missing:
        return f"{spec_name} needs {fault.name} ({kind.model_fields[fault.name].description}).", example(fault.name)
    return f"{spec_name}: {fault.name} = {parameters.get(fault.name)} is not possible: {fault.problem}.", ""


@dataclass(frozen=True)
class Parameter:
    """What is published about a parameter of a method or a task.

    Attributes:
        name: Its name in a spec.
        required: Whether it has to be given.
        default: Its value where it is not given.
        help: Its meaning.
        unit: Unit of its value; ``1`` for a plain number, None where there is none.
        allowed: The values that are possible, in words; None where all are.
    """

    name: str
    required: bool
    default: Any
    help: str | None
    unit: str | None
    allowed: str | None


def describe_parameter(name: str, field: FieldInfo) -> Parameter:
    """Returns what a field says about itself."""
    extra = field.json_schema_extra
    unit = extra.get("unit") if isinstance(extra, dict) else None
    return Parameter(
        name,
        field.is_required(),
        None if field.is_required() else field.default,
        field.description,
        None if unit is None else str(unit),
        describe_range(field) or None,
    )
