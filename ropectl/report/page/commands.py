"""The exact command behind a number: settings out of a record, as flags that measure the same again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ropectl.evaluate.config import CompareConfig, ModelConfig, PasskeyConfig, PerplexityConfig
from ropectl.evaluate.tasks_config import TasksConfig

if TYPE_CHECKING:
    from pydantic import BaseModel

#: Flags that are not called as their settings.
_FLAGS = {
    "lengths": "length",
    "methods": "method",
    "factors": "factor",
    "needle_positions": "position",
    "tasks": "task",
}

#: Settings that a command is given as arguments.
_ARGUMENTS = ("model", "others")

#: Settings of the comparison that are said of its first model alone.
_OF_THE_FIRST = ("revision", "original_length", "layers")

#: A row is measured under its own method, not under what completes a spec.
_SCALING = ("factor", "target_length", "replace", "model", *_OF_THE_FIRST)

#: What only verdicts are made with, which a single measurement makes none of, or says otherwise.
_VERDICTS = ("tolerance", "min_accuracy", "fail_above")

#: Settings that let a checkpoint run code.
RISKS = ("trust_remote_code", "allow_pickle")

_KINDS: Mapping[str, tuple[str, type[ModelConfig]]] = {
    "perplexity": ("eval-perplexity", PerplexityConfig),
    "passkey": ("eval-passkey", PasskeyConfig),
    "tasks": ("eval-tasks", TasksConfig),
}


@dataclass(frozen=True)
class Command:
    """A command line.

    Attributes:
        about: What it gives.
        line: To be pasted into a shell.
        is_risky: Whether it lets the checkpoint run code.
    """

    about: str
    line: str
    is_risky: bool = False


def comparison_command(record: Mapping[str, Any], out: Path | None) -> Command | None:
    """Returns what makes a whole comparison again, or continues it; None if its settings cannot be read.

    Args:
        record: Of a comparison.
        out: Its run folder.
    """
    config = _config(CompareConfig, record["manifest"].get("config"))
    if config is None:
        return None
    more = {"out": str(out)} if out is not None else {}
    return _command("The whole comparison", "compare-methods", config, more)


def row_commands(record: Mapping[str, Any], row: Mapping[str, Any]) -> list[Command]:
    """Returns the single measurements that give the numbers of one row.

    Args:
        record: Of a comparison.
        row: One of its rows.
    """
    config = _config(CompareConfig, record["manifest"].get("config"))
    if config is None:
        return []
    found = []
    subject = _subject(record, row, config)
    if subject is None:
        return []
    for kind, key, about, more in (
        (PerplexityConfig, "perplexity", "Perplexity by context", {}),
        (PerplexityConfig, "tail", "The loss behind \u201cmodels\u201d", {"protocol": "tail"}),
        (PasskeyConfig, "passkey", "Passkeys", {}),
    ):
        if not row[key]:
            continue
        lengths = sorted({*map(int, record["lengths"])})
        if key == "tail":
            more = {**more, "tolerance": config.tolerance}
        shared = {name: getattr(config, name) for name in kind.model_fields if hasattr(config, name)}
        shared = {name: value for name, value in shared.items() if name not in (*_SCALING, *_VERDICTS)}
        settings = _config(kind, {**shared, **subject, **more, "lengths": lengths})
        if settings is not None:
            name = "eval-passkey" if kind is PasskeyConfig else "eval-perplexity"
            found.append(_command(about, name, settings))
    return found


def _subject(record: Mapping[str, Any], row: Mapping[str, Any], config: CompareConfig) -> dict[str, Any] | None:
    """Model and method of a row, as a single measurement is told; None where its weights are not known."""
    training = row["training"]
    if training is not None:
        checkpoint = training["checkpoint"]
        return {"model": checkpoint, "method": row["method"], "replace": True} if checkpoint else None
    if row["model"] != record["model"]:
        return {"model": row["model"]}
    of_the_first = {name: getattr(config, name) for name in _OF_THE_FIRST}
    existing = (record["manifest"].get("existing") or {}).get(row["model"], "none")
    if row["method"] == existing:
        return {"model": row["model"], **of_the_first, "method": "none" if existing == "none" else None}
    return {"model": row["model"], **of_the_first, "method": row["method"], "replace": existing != "none"}


def measurement_command(kind: str, record: Mapping[str, Any]) -> Command | None:
    """Returns what measures a single record again.

    Args:
        kind: ``perplexity``, ``passkey`` or ``tasks``.
        record: The record.
    """
    name, shape = _KINDS[kind]
    config = _config(shape, record["manifest"].get("config"))
    return None if config is None else _command("This record", name, config)


def typed_command(command: Any) -> str | None:
    """Returns a command as it was typed, with the program's name for however it was started."""
    if not isinstance(command, list) or len(command) < 2 or not all(isinstance(part, str) for part in command):
        return None
    return shlex.join(["ropectl", *command[1:]])


def _config(kind: type[BaseModel], settings: Any) -> Any:
    """Settings as their type; None where a record's are not possible."""
    if not isinstance(settings, Mapping):
        return None
    known = {name: value for name, value in settings.items() if name in kind.model_fields}
    try:
        return kind.model_validate(known)
    except (ValidationError, ValueError, TypeError):
        return None


def _command(about: str, name: str, config: BaseModel, more: Mapping[str, Any] | None = None) -> Command:
    fields = type(config).model_fields
    values = {key: getattr(config, key) for key in fields}
    given = {key: value for key, value in values.items() if key not in _ARGUMENTS and value != fields[key].default}
    parts = [part for key, value in {**given, **(more or {})}.items() for part in _flag(key, value)]
    arguments = [str(values["model"]), *map(str, values.get("others", ()))]
    if any(argument.startswith("-") for argument in arguments):
        parts, arguments = [], [*parts, "--", *arguments]
    line = shlex.join(["ropectl", name, *arguments, *parts])
    return Command(about, line, any(given.get(risk) for risk in RISKS))


def _flag(name: str, value: Any) -> Iterable[str]:
    flag = f"--{_FLAGS.get(name, name).replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    if isinstance(value, tuple | list):
        if name in ("lengths", "needle_positions"):
            return [flag, ",".join(map(str, value))]
        return [part for item in value for part in _flag(name, item)]
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]
