"""Settings: declared once, as annotated fields, for flags, YAML files and Python, with readable errors.

A field's type reads the value (``8k`` is a length), its description is the help text and the end of an error message,
and its :class:`ropectl.option.Option` is how the command line spells it.
"""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from ropectl.errors import ConfigError
from ropectl.faults import Fault
from ropectl.file_reading import home_path
from ropectl.lengths import parse_length, parse_lengths
from ropectl.names import name_hint, unknown_choice
from ropectl.printable import shorten, shown

#: No count, length or seed is larger: it is what 32 bits hold.
MAX_WHOLE = 2**32 - 1


class Settings(BaseModel):
    """The settings of a command: an immutable value."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    @field_validator("*")
    @classmethod
    def _bounded(cls, value: Any) -> Any:
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and abs(number) > MAX_WHOLE:
                raise ValueError(f"it must be at most {MAX_WHOLE}")
        return value

    def check_typed(self) -> None:
        """Checks names that people type in flags and files; Python may name what a plugin has registered.

        Raises:
            ConfigError: Naming the setting, its value and the nearest known name.
        """


Config = TypeVar("Config", bound=BaseModel)


def _length(value: Any, info: ValidationInfo) -> Any:
    return parse_length(value, (info.field_name or "length").replace("_", "-")) if isinstance(value, str) else value


def _texts(value: Any) -> list[str]:
    """Returns one value or several, as they are written."""
    return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]


def _lengths(value: Any) -> list[int]:
    return parse_lengths(_texts(value))


def _positions(value: Any) -> list[int]:
    """Returns token positions, written as lengths are; 0 is allowed too."""
    parts = [part.strip() for text in _texts(value) for part in text.split(",")]
    later = [part for part in parts if part != "0"]
    return [0] * ("0" in parts) + parse_lengths(later, "position")


def _home_path(value: Any) -> Any:
    return home_path(value) if isinstance(value, str | Path) else value


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"{shown(value)} is given twice")
    return values


#: A number of tokens, also written ``8k``.
Tokens = Annotated[int, BeforeValidator(_length)]

#: Numbers of tokens, also written ``1k..32k``, ascending.
Lengths = Annotated[tuple[int, ...], BeforeValidator(_lengths)]

#: Positions in a text, written as lengths are, ascending.
Positions = Annotated[tuple[int, ...], BeforeValidator(_positions)]

#: Different texts, of which a single one needs no list.
Texts = Annotated[tuple[str, ...], BeforeValidator(_several), AfterValidator(_distinct)]

#: A path whose ``~`` is the home directory: shells do not expand it in ``--out=~/x``, and neither does YAML.
HomePath = Annotated[Path, BeforeValidator(_home_path)]


def make_config(kind: type[Config], settings: dict[str, Any]) -> Config:
    """Returns checked settings, from the values of flags or a file.

    Raises:
        ConfigError: Naming the setting, its value and what is allowed.
    """
    _check_switches(kind, settings)
    try:
        return kind(**settings)
    except ValidationError as error:
        raise _refusal(kind, settings, error) from None


def value_types(annotation: Any) -> set[Any]:
    """Returns the types that an annotation allows; ``Literal`` for one of some words."""
    if get_origin(annotation) is Literal:
        return {Literal}
    if get_origin(annotation) is Annotated:
        return value_types(get_args(annotation)[0])
    inner = [value_types(part) for part in get_args(annotation)]
    return set().union(*inner) if inner else {annotation}


def words_of(annotation: Any) -> list[str]:
    """Returns the words that a ``Literal`` allows, with or without None; empty for another type."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    return [word for part in get_args(annotation) for word in words_of(part)]


def _check_switches(kind: type[BaseModel], settings: dict[str, Any]) -> None:
    """Refuses ``true`` where a number or a word belongs: it would count as 1, and ``off`` in YAML is false.

    Raises:
        ConfigError: Naming the setting.
    """
    for name, value in settings.items():
        field = kind.model_fields.get(name)
        values = value if isinstance(value, list | tuple) else [value]
        if field is None or not any(isinstance(entry, bool) for entry in values):
            continue
        types = value_types(field.annotation)
        if bool in types:
            continue
        is_number = bool({int, float} & types)
        wanted = "a number belongs there" if is_number else "a word belongs there"
        hint = "YAML reads on, yes, off and no as true and false" + (
            "." if is_number else f': put the word in quotes, as in {name}: "on".'
        )
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        raise ConfigError(f"{name.replace('_', '-')} = {shown} is not possible: {wanted} ({field.description}).", hint)


def _refusal(kind: type[BaseModel], settings: dict[str, Any], error: ValidationError) -> ConfigError:
    """Returns the error for settings that pydantic refuses: the setting, its value, what is allowed, a near name."""
    fault = Fault.of(kind, error)
    if fault.name is None:
        return ConfigError(fault.problem)
    if fault.is_unknown:
        return ConfigError(f"There is no setting {fault.name!r} here.", name_hint(fault.name, kind.model_fields))
    field, setting, value = kind.model_fields[fault.name], fault.name.replace("_", "-"), settings.get(fault.name)
    if words := words_of(field.annotation):
        return unknown_choice(setting, value, words)
    if value is None or isinstance(value, list | tuple):
        value = fault.value
    hint = "YAML reads a date there; put text in quotes." if isinstance(value, date) else ""
    if cure := fault.cure(kind, settings):
        hint = cure.hint(cure.option)
    return ConfigError(f"{setting} = {_shown(value)} is not possible: {fault.problem} ({field.description}).", hint)


def _shown(value: Any) -> str:
    """Returns a value as it was written: numbers bare, whether from a flag or a file, words in quotes."""
    if isinstance(value, date):
        return str(value)
    try:
        return shorten(str(value)) if math.isfinite(float(value)) else shown(value)
    except (TypeError, ValueError, OverflowError):
        return shown(value)
