"""A command's options, made from the fields of its settings: name, help, default and completion."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ropectl.cli import completion
from ropectl.option import Option, Panel, option_of
from ropectl.setting_types import value_types, words_of
from ropectl.specs import format_value

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

_PANELS = list(Panel)

#: The unit at the end of a description, which errors show; in a panel of options brackets would be markup.
_UNIT = re.compile(r" \[[a-z ]+]$")


def setting_parameters(kind: type[BaseModel]) -> list[inspect.Parameter]:
    """Returns an option, or an argument, for every setting that has one.

    All are None where nothing is given, so that a file's value is overridden by flags only. Numbers stay as they
    were typed: the settings read them, and refuse them in the same words as those of a file.

    Args:
        kind: The settings. Those of a class are shown before those of its bases.
    """
    found = [(option, _parameter(kind, name, option)) for name, option in _in_order(kind) if option.goes_on is None]
    found.sort(key=lambda pair: -1 if pair[0].panel is None else _PANELS.index(pair[0].panel))
    return [parameter for _, parameter in found]


def rest_of_argument(kind: type[BaseModel]) -> tuple[str, str] | None:
    """Returns an argument that takes several values, and the setting that holds those after the first."""
    fields = kind.model_fields.items()
    rests = [(option.goes_on, name) for name, field in fields if (option := option_of(field)) and option.goes_on]
    return rests[0] if rests else None


def help_text(field: FieldInfo) -> str:
    """Returns a setting's help: its description as a sentence, without the unit, and the default."""
    option, default = option_of(field), field.default
    text = _UNIT.sub("", str(field.description))
    said = f": {option.default}" if option is not None and option.default else ""
    if not said and not field.is_required() and not isinstance(default, bool) and default not in (None, ()):
        said = f" {format_value(default)}"
    return f"{text[0].upper()}{text[1:]}{f' (default{said})' if said else ''}."


def _in_order(kind: type[BaseModel]) -> Iterator[tuple[str, Option]]:
    """Yields the settings with options, those of the class itself first."""
    names = [name for each in kind.__mro__ for name in getattr(each, "__annotations__", {})]
    for name in dict.fromkeys(names):
        field = kind.model_fields.get(name)
        if field is not None and (option := option_of(field)) is not None:
            yield name, option


def _parameter(kind: type[BaseModel], name: str, option: Option) -> inspect.Parameter:
    field = kind.model_fields[name]
    types = value_types(field.annotation)
    rest = rest_of_argument(kind)
    annotation: Any = Path if Path in types else bool if bool in types else str
    is_list = getattr(field.annotation, "__origin__", None) is tuple
    if is_list or option.is_repeated or (rest is not None and rest[0] == name):
        annotation = list[str]
    shared: dict[str, Any] = {
        "help": help_text(field),
        "metavar": option.metavar,
        "autocompletion": _completion(field, option),
        "show_default": False,
    }
    if option.panel is None:
        info = typer.Argument(**shared)
    else:
        info = typer.Option(*_spellings(name, field, option), **shared, rich_help_panel=option.panel.value)
    default = inspect.Parameter.empty if field.is_required() else None
    wanted = annotation if field.is_required() else annotation | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[wanted, info])


def _spellings(name: str, field: FieldInfo, option: Option) -> tuple[str, ...]:
    flag = f"--{name.replace('_', '-')}"
    if field.annotation is not bool:
        return option.names or (flag,)
    return (f"{flag}/--no-{flag[2:]}",) if field.default is True else (flag,)


def _completion(field: FieldInfo, option: Option) -> Callable[[str], list[str]] | None:
    if words := words_of(field.annotation):
        return completion.words(words)
    if option.offers is None:
        return None
    if ":" in option.offers:
        return completion.names_in(option.offers)
    offer: completion.Offer = getattr(completion, option.offers)
    return offer
