"""A command that takes its words literally: nothing empty, nothing twice, no path that cannot be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from ropectl.errors import ConfigError
from ropectl.file_reading import home_path


class StrictCommand(TyperCommand):
    """A command whose options are checked as they were typed, before anything reads them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments of the command, and checks them.

        Raises:
            ConfigError: If an option with one value is given twice, or a value is empty or no possible text or path.
        """
        if not ctx.resilient_parsing:  # completion parses what is not yet typed to the end
            typed, _, order = self.make_parser(ctx).parse_args(args=list(args))
            self._check_once(order)
            self._check_texts(typed)
        rest = super().parse_args(ctx, args)
        for name, value in ctx.params.items():
            if isinstance(value, Path):
                ctx.params[name] = home_path(value)
            elif isinstance(value, list | tuple):
                ctx.params[name] = [home_path(each) if isinstance(each, Path) else each for each in value]
        return rest

    def _check_once(self, order: list[Any]) -> None:
        options = [each for each in order if each.param_type_name == "option" and not each.multiple]
        for name, number in Counter(option.name for option in options).items():
            if number > 1:
                flag = _flag(next(option for option in options if option.name == name))
                raise ConfigError(f"{flag} is given {number} times, and means one value.", "Give it once.")

    def _check_texts(self, typed: dict[str, Any]) -> None:
        for option in self.params:
            value = typed.get(option.name or "")
            for text in value if isinstance(value, list | tuple) else [value]:
                if isinstance(text, str) and not text.strip():
                    raise ConfigError(f"{_flag(option)} is empty.", "Give it a value, or leave it out.")


def _flag(option: Any) -> str:
    """Returns an option as it is typed, or the name of an argument."""
    if option.param_type_name != "option":
        return str(option.metavar or option.name).upper()
    return next((str(name) for name in option.opts if name.startswith("--")), str(option.opts[0]))
