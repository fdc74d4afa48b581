"""The command-line side of a setting, and groups of settings; both are part of the setting's annotation.

Nothing heavy is imported here, so that the first page of help appears at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


class Panel(str, Enum):
    """The panels of a command's help, in the order in which they are shown."""

    harness = "Harness"
    runtime = "Runtime"
    choosing = "Choosing (with --choose)"
    scaling = "Scaling"
    data = "Data"
    weights = "Weights"
    measurement = "Measurement"
    protocol = "Protocol"
    gates = "Gates"
    training = "Training"
    engine = "Engine"
    validation = "Validation"
    output = "Output"
    model = "Model"
    shown = "What to show"
    run = "Run"


@dataclass(frozen=True)
class Option:
    """The command-line side of a setting, whose help is the field's description.

    Attributes:
        panel: The panel of the help that shows it; None for an argument, which has no name.
        metavar: The placeholder of its value in the help; None for a switch.
        names: Its spellings, if not the field's name with ``--`` and ``-``.
        default: The default in words; by default the field's own.
        offers: What completion offers: a function of ``ropectl.cli.completion``, or the names in a table, or in what a
            function returns, as ``module:NAME``. The words of a ``Literal`` need none.
        is_repeated: Whether it may be given several times, though the setting itself is one value.
        goes_on: The argument whose further values are this setting.
    """

    panel: Panel | None = None
    metavar: str | None = None
    names: tuple[str, ...] = ()
    default: str | None = None
    offers: str | None = None
    is_repeated: bool = False
    goes_on: str | None = None


def option_of(field: FieldInfo) -> Option | None:
    """Returns the command-line side of a setting; None where it has none."""
    options = [each for each in field.metadata if isinstance(each, Option)]
    return options[-1] if options else None


def command_words(name: str, settings: BaseModel, more: Mapping[str, Any] | None = None) -> list[str]:
    """Returns a command as it is typed: its arguments, and an option for each setting that differs from its default.

    Args:
        name: The command.
        settings: Its settings.
        more: Options that are no settings, by name.
    """
    options: list[str] = []
    arguments: list[str] = []
    for key, field in type(settings).model_fields.items():
        value, option = getattr(settings, key), option_of(field)
        if option is not None and option.panel is None:
            arguments += [value] if isinstance(value, str) else value
        elif value != field.default:
            # Without an option of its own, it is what a repeated one fills: --factor 2 --factor 4.
            plain = key if option is not None else key.removesuffix("s")
            options += _words(option.names[-1] if option is not None and option.names else plain, value)
    options += [word for key, value in (more or {}).items() for word in _words(key, value)]
    if any(argument.startswith("-") for argument in arguments):
        return ["ropectl", name, *options, "--", *arguments]
    return ["ropectl", name, *arguments, *options]


def _words(name: str, value: Any) -> list[str]:
    flag = name if name.startswith("-") else f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        on, _, off = flag.partition("/")
        return [on if value else off or f"--no-{on[2:]}"]
    if isinstance(value, tuple | list):
        if all(isinstance(item, int) for item in value):
            return [flag, ",".join(map(str, value))]
        return [word for item in value for word in _words(name, item)]
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]


@dataclass(frozen=True)
class Group:
    """A group of settings that are used together. A field belongs to the groups that its annotation names.

    Attributes:
        about: What they have in common.
    """

    about: str

    def names(self, kind: type[BaseModel]) -> list[str]:
        """Returns the names of the settings of a type that belong to the group."""
        return [name for name, field in kind.model_fields.items() if self in field.metadata]

    def values(self, settings: BaseModel) -> dict[str, Any]:
        """Returns the group's settings by name."""
        return {name: getattr(settings, name) for name in self.names(type(settings))}

    def changed(self, settings: BaseModel) -> list[str]:
        """Returns the names of the group's settings that differ from their defaults."""
        fields = type(settings).model_fields
        return [name for name, value in self.values(settings).items() if value != fields[name].default]

    def defaults(self, kind: type[BaseModel]) -> dict[str, Any]:
        """Returns the defaults of the group's settings by name."""
        return {name: kind.model_fields[name].default for name in self.names(kind)}
