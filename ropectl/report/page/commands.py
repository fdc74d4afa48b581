"""The exact command for a number: the settings in a record, as flags that measure the same again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ropectl.errors import RopectlError
from ropectl.evaluate.config import CompareConfig, PasskeyConfig, PerplexityConfig
from ropectl.evaluate.shared_config import VERDICT, ModelConfig
from ropectl.evaluate.tasks_config import TasksConfig
from ropectl.hf.model_settings import CHECKPOINT, PERMISSION, SCALING, ConfigSettings
from ropectl.option import command_words
from ropectl.records import ComparisonRecord, MethodRow, PasskeyRecord, PerplexityRecord, TasksRecord
from ropectl.report.blocks import Command

if TYPE_CHECKING:
    from pydantic import BaseModel

_SETTINGS: Mapping[type, type[ModelConfig]] = {
    PerplexityRecord: PerplexityConfig,
    PasskeyRecord: PasskeyConfig,
    TasksRecord: TasksConfig,
}


def comparison_command(record: ComparisonRecord, out: Path | None) -> Command | None:
    """Returns the command that repeats or continues a whole comparison; None if its settings cannot be read.

    Args:
        record: The comparison.
        out: Its run folder; None if not known.
    """
    config = _config(CompareConfig, record.manifest.config)
    if config is None:
        return None
    more = {"out": str(out)} if out is not None else {}
    return _command("The whole comparison", "compare-methods", config, more)


def row_commands(record: ComparisonRecord, row: MethodRow) -> list[Command]:
    """Returns the commands of the single measurements that give the numbers of one row.

    Args:
        record: The comparison.
        row: One of its rows.
    """
    config = _config(CompareConfig, record.manifest.config)
    subject = _subject(record, row, config) if config else None
    if config is None or subject is None:
        return []
    found = []
    for kind, key, about, more in (
        (PerplexityConfig, "perplexity", "Perplexity by context", {}),
        (PerplexityConfig, "tail", "The loss that decides \u201cmodels\u201d", {"protocol": "tail"}),
        (PasskeyConfig, "passkey", "Passkeys", {}),
    ):
        if not getattr(row, key):
            continue
        if key == "tail":
            more = {**more, "tolerance": config.tolerance}
        excluded = {name for group in (CHECKPOINT, SCALING, VERDICT) for name in group.names(kind)}
        names = [name for name in kind.model_fields if hasattr(config, name) and name not in excluded]
        shared = {name: getattr(config, name) for name in names}
        settings = _config(kind, {**shared, **subject, **more, "lengths": sorted({*record.lengths})})
        if settings is not None:
            name = "eval-passkey" if kind is PasskeyConfig else "eval-perplexity"
            found.append(_command(about, name, settings))
    return found


def _subject(record: ComparisonRecord, row: MethodRow, config: CompareConfig) -> dict[str, Any] | None:
    """Returns model and method of a row as settings of a single measurement; None if its weights are not known."""
    training = row.training
    if training is not None:
        checkpoint = training.checkpoint
        return {"model": checkpoint, "method": row.method, "replace": True} if checkpoint else None
    if row.model != record.model:
        return {"model": row.model}
    of_the_first = {
        n: v for n, v in CHECKPOINT.values(config).items() if n in ConfigSettings.model_fields and n != "model"
    }
    existing = record.manifest.existing.get(row.model, "none")
    if row.method == existing:
        return {"model": row.model, **of_the_first, "method": "none" if existing == "none" else None}
    return {"model": row.model, **of_the_first, "method": row.method, "replace": existing != "none"}


def measurement_command(record: PerplexityRecord | PasskeyRecord | TasksRecord) -> Command | None:
    """Returns the command that measures a single record again; None if its settings cannot be read."""
    config = _config(_SETTINGS[type(record)], record.manifest.config)
    return None if config is None else _command("This record", record.written_by, config)


def typed_command(command: Sequence[str]) -> str | None:
    """Returns a command as it was typed, beginning with ``ropectl`` however it was started; None if not known."""
    return shlex.join(["ropectl", *command[1:]]) if len(command) > 1 else None


def _config(kind: type[BaseModel], settings: Mapping[str, Any]) -> Any:
    """Returns settings as an object of their type; None if those of the record are not valid."""
    known = {name: value for name, value in settings.items() if name in kind.model_fields}
    try:
        return kind.model_validate(known)
    except (RopectlError, ValidationError, ValueError, TypeError):
        return None


def _command(about: str, name: str, config: BaseModel, more: Mapping[str, Any] | None = None) -> Command:
    return Command(about, shlex.join(command_words(name, config, more)), bool(PERMISSION.changed(config)))
