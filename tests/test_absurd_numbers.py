"""Numbers that nothing could ever finish are refused by every command, before anything is made that grows with them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from ropectl.cli.app import COMMANDS
from ropectl.errors import ConfigError
from ropectl.option import option_of
from ropectl.setting_types import make_config, value_types

Run = Callable[..., tuple[int, str, str]]


def settings_of(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


#: Every setting that is a number, of every command.
NUMBERS = sorted(
    {
        (command.name, name)
        for command in COMMANDS
        if command.settings
        for name, field in settings_of(command.settings).model_fields.items()
        if {int, float} & value_types(field.annotation) and option_of(field)
    }
)
KINDS = {command.name: settings_of(command.settings) for command in COMMANDS if command.settings}

ABSURD = ["9" * 30, str(10**30), "9" * 400, "nan", "inf", "-1" + "0" * 30, "1e400", "0x10", "1_000_000_000_000"]


@pytest.mark.parametrize(("command", "name"), NUMBERS)
def test_a_number_that_cannot_be_meant(command: str, name: str) -> None:
    kind = KINDS[command]
    for value in ABSURD:
        try:
            settings = make_config(kind, {name: value})
        except ConfigError as error:
            assert len(error.message) < 400
        else:
            numbers = getattr(settings, name)
            assert float in value_types(kind.model_fields[name].annotation), (value, numbers)


def test_there_are_numbers_to_try() -> None:
    assert len(NUMBERS) > 60


def test_text_of_other_digits_is_no_length(ropectl: Run) -> None:
    code, _, err = ropectl("eval-perplexity", "--length", "٣٠٠")
    assert code == 2 and "is not a number of tokens" in err
