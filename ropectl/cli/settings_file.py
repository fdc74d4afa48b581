"""A command's settings in a file, under the names that its options have on the command line."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.models import OptionInfo

from ropectl.config_file import read_yaml
from ropectl.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel


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
    """Returns the settings in a file, which may be called as the command's options are.

    Raises:
        ConfigError: If it cannot be read, says one under two names, or says what can only be typed.
    """
    names = option_names(parameters)
    settings: dict[str, Any] = {}
    said: dict[str, str] = {}
    for key, value in read_yaml(file).items():
        name = key if key in kind.model_fields else names.get(key, key)
        if name not in kind.model_fields and (key in names or name in names.values()):
            option = next((spelling for spelling, argument in names.items() if argument == name), key)
            raise ConfigError(f"--{option.replace('_', '-')} is typed, not set in a file.", f"Take it out of {file}.")
        if name in said:
            raise ConfigError(f"{said[name]} and {key} in {file} are the same setting.", "Keep one of them.")
        said[name], settings[name] = key, value
    return settings
