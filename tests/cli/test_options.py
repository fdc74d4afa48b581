"""An option is a field: its help, its words and its completion are the field's, and nothing is said twice."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel

from ropectl.cli.app import COMMANDS, full_command
from ropectl.cli.binding import CommandLine
from ropectl.cli.signature import help_text, rest_of_argument
from ropectl.hf.model_settings import CHECKPOINT, LOADING, PERMISSION, SCALING, ModelSettings
from ropectl.option import option_of
from ropectl.setting_types import words_of

WITH_SETTINGS = [command for command in COMMANDS if command.settings]


def settings_of(command: CommandLine) -> type[BaseModel]:
    module, _, name = command.settings.partition(":")
    kind: type[BaseModel] = getattr(import_module(module), name)
    return kind


@pytest.mark.parametrize("command", WITH_SETTINGS, ids=lambda command: command.name)
def test_help_is_the_fields(command: CommandLine) -> None:
    kind = settings_of(command)
    options: dict[str, Any] = {option.name: option for option in full_command(command.name).params}
    for name, field in kind.model_fields.items():
        option = option_of(field)
        if option is not None and option.goes_on is None:
            assert options.pop(name).help == help_text(field), name
    own = inspect.signature(command.function).parameters.keys() - {"settings"}
    assert options.keys() - {"help"} == own | ({"config", "print_config"} if command.takes_file else set())


@pytest.mark.parametrize("command", WITH_SETTINGS, ids=lambda command: command.name)
def test_a_command_takes_the_settings_that_its_function_names(command: CommandLine) -> None:
    kind = settings_of(command)
    assert get_type_hints(command.function, localns={kind.__name__: kind})["settings"] is kind


@pytest.mark.parametrize("command", WITH_SETTINGS, ids=lambda command: command.name)
def test_every_word_that_is_allowed_is_explained(command: CommandLine) -> None:
    for name, field in settings_of(command).model_fields.items():
        missing = [word for word in words_of(field.annotation) if word not in str(field.description)]
        assert not missing or option_of(field) is None, name


def test_every_setting_of_a_model_is_in_a_group() -> None:
    """What is said of one model is set back for another, and handed on to its trainings: by group, not by name."""
    groups = (CHECKPOINT, PERMISSION, SCALING, LOADING)
    grouped = [name for group in groups for name in group.names(ModelSettings)]
    assert sorted(grouped) == sorted(ModelSettings.model_fields)


def test_further_models_go_on_after_the_first() -> None:
    found = {command.name: rest_of_argument(settings_of(command)) for command in WITH_SETTINGS}
    assert {name: rest for name, rest in found.items() if rest} == {"compare-methods": ("model", "others")}
