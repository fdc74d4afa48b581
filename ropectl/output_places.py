"""Checks places that results go to, before anything is computed: results stay among their own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ropectl.errors import ConfigError
from ropectl.file_reading import other_kind, reason_of
from ropectl.json_reading import read_object

CELLS_FOLDER, PLAN_FILE, COMPARISON_FILE = "cells", "plan.json", "comparison.json"

#: Files that mark a folder as a checkpoint or an adapter.
MODEL_FILES = ("config.json", "adapter_config.json")

ANOTHER_PLACE = "Choose another place: --out PATH"


def check_output(path: Path, hint: str = ANOTHER_PLACE) -> None:
    """Checks that a result file may be written to a path: nothing is there, or an ordinary file, and not in a model.

    Raises:
        ConfigError: If something else is there: to replace a device or what a link leads to is never meant.
    """
    if kind := other_kind(path) or ("a link" if path.is_symlink() else None):
        raise ConfigError(f"{path} is {kind}; the result is one file.", hint)
    _check_outside_models(path.parent, hint)


def check_folder(path: Path, hint: str = ANOTHER_PLACE) -> None:
    """Checks that a path may become a folder of results: nothing is there, or a folder that is not in a model.

    Raises:
        ConfigError: If something else is there.
    """
    if os.path.lexists(path) and not path.is_dir():
        raise ConfigError(f"{path} is {other_kind(path) or 'a file'}; results of this kind need a folder.", hint)
    _check_outside_models(path, hint)


def check_run_folder(path: Path) -> None:
    """Checks that a path is free for the run of a comparison, or holds one.

    Raises:
        ConfigError: If it is a model, or holds files of something else.
    """
    check_folder(path)
    names = {each.name for each in path.iterdir()} if path.is_dir() else set()
    if models := sorted(names & set(MODEL_FILES)):
        raise ConfigError(f"{path} is the folder of a model: it holds {models[0]}. A run needs its own.", ANOTHER_PLACE)
    if CELLS_FOLDER in names and ((path / CELLS_FOLDER).is_symlink() or not (path / CELLS_FOLDER).is_dir()):
        kind = "a link" if (path / CELLS_FOLDER).is_symlink() else other_kind(path / CELLS_FOLDER) or "a file"
        raise ConfigError(f"{path / CELLS_FOLDER} is {kind}; the cells of a run are in a folder.", ANOTHER_PLACE)
    for record in {PLAN_FILE, COMPARISON_FILE} & names:
        check_output(path / record)
    is_run = CELLS_FOLDER in names or any(_is_record(path / name) for name in (PLAN_FILE, COMPARISON_FILE))
    if names and not is_run:
        raise ConfigError(f"{path} holds files that are not of a run, such as {min(names)}.", ANOTHER_PLACE)


def check_writable(folder: Path) -> None:
    """Checks that files can be created in a folder, or in the nearest existing one above it; leaves nothing there.

    Raises:
        ConfigError: If they cannot.
    """
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(place))
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise ConfigError(f"Cannot write to {folder}: {reason_of(error)}.", ANOTHER_PLACE) from None


def _is_record(path: Path) -> bool:
    try:
        return "schema_version" in read_object(path)
    except ConfigError:
        return False


def _check_outside_models(folder: Path, hint: str) -> None:
    """Refuses a place in the folder of a model: what is written there would travel with it, or take its files' place."""
    try:
        whole = folder.resolve()
    except (OSError, RuntimeError):  # links that lead to themselves
        raise ConfigError(f"{folder} is a link that leads to itself.", hint) from None
    for place in (whole, *whole.parents):
        if any((place / name).is_file() for name in MODEL_FILES) and _has_weights(place):
            where = "" if place == whole else f"in {place}, "
            raise ConfigError(f"{folder} is {where}the folder of a model, where nothing else belongs.", hint)


def _has_weights(folder: Path) -> bool:
    return any(each.suffix in (".safetensors", ".bin") for each in folder.iterdir())
