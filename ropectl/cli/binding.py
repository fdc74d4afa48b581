"""From a command line to checked settings to one call: what all commands that take settings have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ropectl.cli import options

if TYPE_CHECKING:
    from pydantic import BaseModel

    Config = TypeVar("Config", bound=BaseModel)

Function = Callable[..., None]


@dataclass(frozen=True)
class CommandLine:
    """A command of the program.

    Attributes:
        name: As it is typed.
        panel: Where the first page of help shows it.
        function: What it does. It takes the settings, where there are any, and the options that are not settings.
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
                options.print_settings(settings)
                return
            self.function(settings, **{name: given[name] for name in own if name != "settings"})

        run.__signature__ = parameters  # type: ignore[attr-defined]
        run.__doc__ = self.function.__doc__
        return run


_FILE_PARAMETERS = (
    inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=options.ConfigFile),
    inspect.Parameter("print_config", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=options.PrintConfig),
)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def resolve_config(
    kind: type[Config], file: Path | None, given: Mapping[str, Any], parameters: inspect.Signature | None = None
) -> Config:
    """Returns the settings: defaults, overridden by the file, overridden by the flags that were given.

    Args:
        kind: The settings' type.
        file: YAML file; None for none.
        given: A command's arguments by name, None where a flag was not given. Those that are not settings of this
            type, such as the output format, are left alone.
        parameters: The command's options, whose names a file may use; needed with a file.

    Raises:
        ConfigError: Naming the setting, its value and what is allowed.
    """
    from ropectl.hf.model_settings import EXTENT
    from ropectl.setting_types import Settings, make_config

    settings: dict[str, Any] = {}
    if file is not None:
        from ropectl.cli.settings_file import read_settings

        assert parameters is not None, "whose options a file may name"
        settings = read_settings(kind, file, parameters)
    flags = {name: value for name, value in given.items() if name in kind.model_fields and value is not None}
    extent = EXTENT.names(kind)
    if flags.keys() & set(extent):  # a flag overrides the file's other ways to say the same thing
        settings = {name: value for name, value in settings.items() if name not in extent}
    config = make_config(kind, {**settings, **flags})
    if isinstance(config, Settings):
        config.check_typed()
    return config
