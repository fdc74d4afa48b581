"""Specs, ``NAME[:KEY=VALUE,...]``: one grammar for everything that has a name and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropectl.errors import ConfigError
from ropectl.names import name_hint
from ropectl.printable import printable, shorten, shown
from ropectl.slips import mended_spec

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


def split_spec(
    spec: str, what: str, known: Mapping[str, type[BaseModel]], error: type[ConfigError] = ConfigError
) -> tuple[str, dict[str, str]]:
    """Returns the name in a spec and its parameters as they are written.

    Args:
        spec: ``NAME[:KEY=VALUE,...]``.
        what: The kind of thing that it names, for messages.
        known: What can be named, by name.
        error: The error raised where the spec is malformed, or names nothing that is known; it says what was meant.
    """
    check_typing(spec, f"the {what} spec", error)
    name, colon, rest = (part.strip() for part in spec.partition(":"))
    mended = mended_spec(spec, known)
    meant = f"Did you mean {mended}?" if mended else ""
    if name not in known:
        raise error(f"There is no {what} {shown(name)}.", meant or name_hint(name, known))
    hint = f"A spec is NAME[:KEY=VALUE,...]; parameters of {name}: {', '.join(known[name].model_fields) or 'none'}."
    return name, split_pairs(rest, f"the {what} spec {shown(spec)}", meant or hint, error, f"{name}:") if colon else {}


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
