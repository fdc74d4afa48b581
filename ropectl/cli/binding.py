"""Commands: from a command line to checked settings to one call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from typer.models import OptionInfo

from ropectl.cli import options
from ropectl.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Config = TypeVar("Config", bound=BaseModel)

Function = Callable[..., None]

EXAMPLE = "Example: "


@dataclass(frozen=True)
class CommandLine:
    """A command of the program.

    Attributes:
        name: The name as it is typed.
        panel: The panel on the first page of help that shows it.
        function: The function that runs it. It takes the settings, where there are any, and the options that are not
            settings. Its docstring is the help, with the examples.
        settings: The settings' type as ``module:Class``, imported when the command is used; "" for none.
        takes_file: Whether the settings can stand in a file, ``--config``, and be printed, ``--print-config``.
        completed: A function that fills in what settings imply, as ``module:function``; "" for none.
    """

    name: str
    panel: str
    function: Function
    settings: str = ""
    takes_file: bool = True
    completed: str = ""

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the help, each in one line, to be wrapped to any width."""
        return [" ".join(paragraph.split()) for paragraph in (inspect.getdoc(self.function) or "").split("\n\n")]

    @property
    def description(self) -> list[str]:
        """The paragraphs that are not examples."""
        return [each for each in self.paragraphs if not each.startswith(EXAMPLE)]

    @property
    def examples(self) -> list[str]:
        """The example commands, as they are typed."""
        return [each.removeprefix(EXAMPLE) for each in self.paragraphs if each.startswith(EXAMPLE)]

    def bound(self) -> Function:
        """Returns the function as Typer can read it: an option for every setting, and those of the function itself."""
        if not self.settings:
            return self.function
        from ropectl.cli.signature import rest_of_argument, setting_parameters

        kind = _imported(self.settings)
        rest = rest_of_argument(kind)
        own = inspect.signature(self.function, eval_str=True, locals={kind.__name__: kind}).parameters
        mine = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in own.items()
            if name != "settings"
        ]
        if self.takes_file:
            mine[-1:-1] = _FILE_PARAMETERS
        parameters = inspect.Signature([*setting_parameters(kind), *mine])

        def run(**given: Any) -> None:
            if rest is not None and given[rest[0]]:
                first, *others = given[rest[0]]
                given |= {rest[0]: first, rest[1]: others or None}
            settings = resolve_config(kind, given.get("config"), given, parameters)
            if self.completed:
                settings = _imported(self.completed)(settings)
            if given.get("print_config"):
                from ropectl.cli.output import print_json

                print_json(settings.model_dump(mode="json"))
                return
            self.function(settings, **{name: given[name] for name in own if name != "settings"})

        run.__signature__ = parameters  # type: ignore[attr-defined]
        return run


_FILE_PARAMETERS = (
    inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=options.ConfigFile),
    inspect.Parameter("print_config", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=options.PrintConfig),
)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def resolve_config(
    kind: type[Config], file: Path | None, given: Mapping[str, Any], parameters: inspect.Signature
) -> Config:
    """Returns the settings: defaults, overridden by the file, overridden by the flags that were given.

    Args:
        kind: The settings' type.
        file: YAML file; None for none.
        given: A command's arguments by name, None where a flag was not given. Those that are not settings of this
            type, such as the output format, are ignored.
        parameters: The command's options, whose names a file may use.

    Raises:
        ConfigError: Naming the setting, its value and what is allowed.
    """
    from ropectl.hf.model_settings import EXTENT
    from ropectl.setting_types import Settings, make_config

    settings = {} if file is None else read_settings(kind, file, parameters)
    flags = {name: value for name, value in given.items() if name in kind.model_fields and value is not None}
    extent = EXTENT.names(kind)
    if flags.keys() & set(extent):  # a flag overrides the file's other ways to say the same thing
        settings = {name: value for name, value in settings.items() if name not in extent}
    config = make_config(kind, {**settings, **flags})
    if isinstance(config, Settings):
        config.check_typed()
    return config


def option_names(parameters: inspect.Signature) -> dict[str, str]:
    """Returns a command's options as a settings file would spell them, ``-`` as ``_``, and the arguments they set."""
    names = {}
    for argument, parameter in parameters.parameters.items():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo):
                declared = [text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
                spellings = [text.split("/")[0] for text in declared if text.startswith("--")]
                for spelling in spellings or [f"--{argument}"]:
                    names[spelling[2:].replace("-", "_")] = argument
    return names


def read_settings(kind: type[BaseModel], file: Path, parameters: inspect.Signature) -> dict[str, Any]:
    """Returns the settings in a file, which may have the names of the command's options.

    Raises:
        ConfigError: If it cannot be read, has a setting under two names, or has one that can only be typed.
    """
    from ropectl.config_file import read_yaml

    names = option_names(parameters)
    settings: dict[str, Any] = {}
    keys: dict[str, str] = {}
    for key, value in read_yaml(file).items():
        name = key if key in kind.model_fields else names.get(key, key)
        if name not in kind.model_fields and (key in names or name in names.values()):
            option = next((spelling for spelling, argument in names.items() if argument == name), key)
            raise ConfigError(f"--{option.replace('_', '-')} is typed, not set in a file.", f"Take it out of {file}.")
        if name in keys:
            raise ConfigError(f"{keys[name]} and {key} in {file} are the same setting.", "Keep one of them.")
        keys[name], settings[name] = key, value
    return settings
