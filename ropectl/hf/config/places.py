"""Finds a model: the kinds of places that its name can mean, and how the config is read from each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.errors import ConfigError
from ropectl.file_reading import home_path
from ropectl.gguf.config import read_gguf_config
from ropectl.hf.config.sidecar import SIDECAR
from ropectl.hf.hub_access import hub_host, stay_offline_without_network
from ropectl.json_reading import read_object
from ropectl.names import name_hint
from ropectl.printable import first_line

BUILTIN_MODELS = {"builtin:tiny": TINY_MODEL_DIR}

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Place:
    """A config as it is stored, and where it was found.

    Attributes:
        location: Folder, or hub id, that transformers loads from.
        config: The content of ``config.json``; for a GGUF file the content of its header, in the same form.
        sidecar: The path that the description of a patched checkpoint would have.
        gguf_file: Name of the GGUF file inside ``location``; None for ordinary checkpoints.
        commit: The commit that was read, for models from the hub.
    """

    location: str
    config: Mapping[str, Any]
    sidecar: Path
    gguf_file: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class ModelKind:
    """A kind of place that a model can be in.

    Attributes:
        spelling: The way such a model is named, for messages.
        matches: Returns whether a name, and the path that it would be, mean such a place.
        read: Returns the place, given the name, its path and the revision.
    """

    spelling: str
    matches: Callable[[str, Path], bool]
    read: Callable[[str, Path, str | None], Place]


def local_path(name: str) -> Path:
    """Returns the path that the name of a model would be, were it local."""
    return BUILTIN_MODELS.get(name) or home_path(name)


def find_place(name: str, revision: str | None) -> Place:
    """Returns where a model is, with its config as it is stored.

    Args:
        name: A model that is not an adapter, as the user wrote it.
        revision: Branch, tag or commit on the hub.

    Raises:
        ConfigError: If there is no such model, its config cannot be read, or a revision is named for a local one.
    """
    path = local_path(name)
    kind = next((kind for kind in MODEL_KINDS if kind.matches(name, path)), None)
    if kind is None:
        raise ConfigError(
            f"There is no {'GGUF file' if path.suffix == '.gguf' else 'model folder'} {name!r}.",
            f"Give {', '.join(kind.spelling for kind in MODEL_KINDS[:-1])}, or {MODEL_KINDS[-1].spelling}.",
        )
    place = kind.read(name, path, revision)
    if revision is not None and place.commit is None:
        raise ConfigError(
            f"--revision {revision} names a version on the hub, but {name!r} is a local model.", "Leave out --revision."
        )
    return place


def _is_hub_id(name: str, path: Path) -> bool:
    is_path = path.exists() or name.startswith((".", "/", "~")) or path.suffix == ".gguf"
    return not is_path and _HUB_ID.fullmatch(name) is not None


def _builtin(name: str, path: Path, revision: str | None) -> Place:
    if name not in BUILTIN_MODELS:
        raise ConfigError(f"There is no built-in model {name!r}.", name_hint(name, BUILTIN_MODELS))
    return _folder(name, path, revision)


def _folder(name: str, path: Path, revision: str | None) -> Place:
    return Place(str(path), _config_in(path), path / SIDECAR)


def _gguf(name: str, path: Path, revision: str | None) -> Place:
    return Place(str(path.parent), read_gguf_config(path), path / SIDECAR, gguf_file=path.name)


def _hub(name: str, path: Path, revision: str | None) -> Place:
    """Returns a model on the hub, whose cache keeps each commit in a folder of that name."""
    is_offline = stay_offline_without_network()
    from huggingface_hub import hf_hub_download

    try:
        file = Path(hf_hub_download(name, "config.json", revision=revision))
        return Place(name, _config_in(file.parent), _hub_sidecar(name, file.parent), commit=file.parent.name)
    except ConfigError:
        raise
    except Exception as error:  # the hub client raises many kinds: offline, not found, gated, malformed
        reason = first_line(error)
        if is_offline:
            reason = f"{hub_host()} cannot be reached from here, and the local cache does not have it."
        raise ConfigError(
            f"{name!r} is not a folder here, and its config could not be read from the hub: {reason}",
            "Check the name, the revision and the connection, or give a local folder.",
        ) from None


def _hub_sidecar(name: str, folder: Path) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, SIDECAR, revision=folder.name))
    except Exception:  # most repositories have none, and the hub client has many ways to say so
        return folder / SIDECAR


#: The first that matches is meant. An adapter is not a whole model: see :func:`ropectl.hf.config.source.read_config`.
MODEL_KINDS = (
    ModelKind("builtin:tiny", lambda name, path: name.startswith("builtin:"), _builtin),
    ModelKind("a .gguf file", lambda name, path: path.is_file() and path.suffix == ".gguf", _gguf),
    ModelKind("a folder with a config.json", lambda name, path: path.is_dir(), _folder),
    ModelKind("a hub id such as org/name", _is_hub_id, _hub),
)


def _config_in(folder: Path) -> dict[str, Any]:
    if not os.path.lexists(folder / "config.json"):
        raise ConfigError(f"{folder} has no config.json.", "Give the folder of a Hugging Face checkpoint.")
    return read_object(folder / "config.json")
