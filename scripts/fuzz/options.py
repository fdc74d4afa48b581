"""The options of every command, as the program itself declares them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Given:
    """An option with a value, or an argument.

    Attributes:
        command: Its command.
        name: The setting that it is.
        flag: Its longest spelling; empty for an argument.
        spellings: All of its spellings.
        is_list: Whether it may be given several times.
        field: The setting's field; None for what is no setting.
    """

    command: str
    name: str
    flag: str
    spellings: tuple[str, ...]
    is_list: bool
    field: FieldInfo | None

    @property
    def said(self) -> tuple[str, ...]:
        """What a message about it mentions: one of its names."""
        names = [self.flag.lstrip("-"), *self.spellings, self.name.replace("_", "-")]
        return ("|".join(dict.fromkeys(names)),) if self.flag else ()

    @property
    def types(self) -> set[Any]:
        """The types that its value may have."""
        from ropectl.setting_types import value_types

        return value_types(self.field.annotation) if self.field is not None else set()

    @property
    def is_length(self) -> bool:
        """Whether it is written as ``8k``."""
        hints = "" if self.field is None else str(self.field.metadata) + str(self.field.annotation)
        return any(f"function _{word}" in hints for word in ("length", "lengths", "positions"))

    @property
    def is_path(self) -> bool:
        """Whether it names a file or folder."""
        return Path in self.types or self.name in ("out", "plot", "figures", "config", "runs")


@cache
def options_of(command: str) -> tuple[Given, ...]:
    """Returns the options of a command that take a value, and its arguments."""
    from ropectl.cli.app import COMMANDS

    line = next(each for each in COMMANDS if each.name == command)
    fields: dict[str, FieldInfo] = {}
    if line.settings:
        module, _, name = line.settings.partition(":")
        fields = getattr(import_module(module), name).model_fields
    found = []
    for parameter in _parameters(command):
        if getattr(parameter, "is_flag", False) or parameter.name == "help":
            continue
        is_argument = not parameter.opts[0].startswith("-")
        longest = "" if is_argument else max(parameter.opts, key=len)
        is_list = bool(getattr(parameter, "multiple", False)) or parameter.nargs == -1
        spellings = () if is_argument else tuple(parameter.opts)
        found.append(Given(command, parameter.name, longest, spellings, is_list, fields.get(parameter.name)))
    return tuple(found)


def takes(command: str, flag: str) -> bool:
    """Returns whether a command has an option of this spelling, with or without a value."""
    return any(flag in parameter.opts for parameter in _parameters(command))


@cache
def _parameters(command: str) -> list[Any]:
    from ropectl.cli.app import full_command

    return list(full_command(command).params)
