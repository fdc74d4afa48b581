"""An option that is given twice, is empty, or names no possible path is refused, whichever it is, by every command."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ropectl.cli.app import COMMANDS, full_command
from ropectl.errors import ConfigError

Run = Callable[..., tuple[int, str, str]]

every_command = pytest.mark.parametrize("name", [command.name for command in COMMANDS])


#: What has no default, given besides what is tried.
NEEDED = {"report": ["x"], "verify-runtime": ["x", "--runtime=vllm", "--python=x"]}


@cache
def parsed(name: str) -> Any:
    return full_command(name)


def with_values(name: str) -> list[Any]:
    """The options and arguments of a command that take a value."""
    return [option for option in parsed(name).params if not getattr(option, "is_flag", False)]


def takes_path(option: Any) -> bool:
    return "Path" in str(option.type_descriptor.annotation)


def spelling(option: Any) -> str:
    return max(option.opts, key=len)


def given(option: Any, value: str) -> list[str]:
    return [value] if option.param_type_name == "argument" else [f"{spelling(option)}={value}"]


def refusal(name: str, *arguments: str) -> str:
    """The message about a command line; at most two short lines."""
    typed = {argument.split("=")[0] for argument in arguments}
    others = [each for each in NEEDED.get(name, []) if each.split("=")[0] not in typed]
    with pytest.raises(ConfigError) as caught:
        parsed(name).make_context(name, [*arguments, *others])
    message = str(caught.value)
    assert len(message.splitlines()) <= 2 and max(map(len, message.splitlines())) < 200
    return message


@every_command
def test_an_empty_value(name: str) -> None:
    for option in with_values(name):
        for value in ("", "  "):
            message = refusal(name, *given(option, value))
            assert "is empty" in message and (option.param_type_name == "argument" or spelling(option) in message)


@every_command
def test_one_value_given_twice(name: str) -> None:
    for option in with_values(name):
        if option.param_type_name == "option" and not option.multiple:
            twice = [*given(option, "1"), *given(option, "1")]
            assert f"{spelling(option)} is given 2 times" in refusal(name, *twice)


@every_command
def test_a_path_that_cannot_be(name: str) -> None:
    for option in filter(takes_path, with_values(name)):
        assert "no home directory of ~no-such-user" in refusal(name, *given(option, "~no-such-user/x"))
        assert "longer than the system allows" in refusal(name, *given(option, "n" * 5000))


def test_there_are_paths_to_try() -> None:
    assert sum(takes_path(option) for command in COMMANDS for option in with_values(command.name)) > 20


def test_a_switch_and_its_opposite() -> None:
    assert "--passkey is given 2 times" in refusal("compare-methods", "--passkey", "--no-passkey")


def test_the_command_line_says_it_and_writes_nothing(
    ropectl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (["--plot", ""], ["--factor", "2", "--factor", "4"], ["--plot", "~no-such-user/x"]):
        code, out, err = ropectl("inspect", *arguments)
        assert code == 2 and out == "" and err.startswith("Error: ") and list(tmp_path.iterdir()) == []


def test_what_may_be_repeated_may_be(ropectl: Run) -> None:
    arguments = ["-m", "pi", "-m", "yarn", "--factor", "2", "--factor", "4", "--length", "256", "--length", "512"]
    code, _, err = ropectl("compare-methods", *arguments, "--print-config")
    assert code == 0, err


def test_a_long_word_is_not_echoed_in_full(ropectl: Run) -> None:
    for arguments in (
        ["methods", "x" * 5000],
        ["inspect", "--" + "x" * 5000],
        ["x" * 5000],
        ["env", "--format", "x" * 5000],
    ):
        code, _, err = ropectl(*arguments)
        assert code == 2 and len(err) < 2000
