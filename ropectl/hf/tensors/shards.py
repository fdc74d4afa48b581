"""Finds the tensors of a checkpoint folder: in one file, or in the shards that an index names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ropectl.errors import ConfigError
from ropectl.hf.tensors.safetensors_file import StoredTensor, stored_tensors
from ropectl.json_reading import read_object
from ropectl.names import shown_names
from ropectl.printable import shorten, shown

WEIGHT_SUFFIX = ".safetensors"
WEIGHTS = f"model{WEIGHT_SUFFIX}"
INDEX = f"{WEIGHTS}.index.json"

#: No index is larger [bytes]: a model with a quarter of a million tensors has one of this size.
_MAX_INDEX = 32 * 2**20


@dataclass(frozen=True)
class CheckpointTensors:
    """The tensors of a checkpoint folder.

    Attributes:
        by_name: Those of the files that are there; empty where no weights are in this format.
        num_files: Weight files that were read.
        missing: Shards that the index names and that are not there, as in a download that was cut off.
    """

    by_name: Mapping[str, StoredTensor] = field(default_factory=dict)
    num_files: int = 0
    missing: tuple[str, ...] = ()


def tensors_of(folder: Path) -> CheckpointTensors:
    """Returns the tensors of a checkpoint.

    The one file has precedence over an index, as in transformers. Where a folder has neither, all files are taken.

    Raises:
        ConfigError: If a file is damaged, an index leads out of the folder, or files and index contradict each other.
    """
    index = _weight_map(folder / INDEX) if os.path.lexists(folder / INDEX) else {}
    shards = sorted(set(index.values()))
    missing = tuple(name for name in shards if not (folder / name).is_file())
    if os.path.lexists(folder / WEIGHTS):
        return CheckpointTensors(stored_tensors(folder / WEIGHTS), 1, missing)
    if not index:
        paths = sorted(folder.glob(f"*{WEIGHT_SUFFIX}"))
        return CheckpointTensors(_union(paths), len(paths))
    by_shard = {name: stored_tensors(folder / name) for name in shards if name not in missing}
    absent = [name for name, shard in index.items() if shard not in missing and name not in by_shard[shard]]
    if absent:
        raise ConfigError(
            f"{folder} contradicts itself: {INDEX} says that {index[absent[0]]} holds {shown_names(absent)}, which is not there.",
            "Download it again.",
        )
    found = {name: by_shard[shard][name] for name, shard in index.items() if shard not in missing}
    return CheckpointTensors(found, len(by_shard), missing)


def _union(paths: Sequence[Path]) -> dict[str, StoredTensor]:
    return {name: tensor for path in paths for name, tensor in stored_tensors(path).items()}


def _weight_map(index: Path) -> Mapping[str, str]:
    file = read_object(index, _MAX_INDEX)
    content = file.get("weight_map")
    if not isinstance(file.get("metadata"), dict):
        raise ConfigError(
            f"{index} has no metadata, without which transformers does not load it.", 'Add the line: "metadata": {},'
        )
    if not isinstance(content, dict) or not content:
        raise ConfigError(
            f"{index} names no tensors: its weight_map is {'empty' if content == {} else 'not an object'}."
        )
    for name, file in content.items():
        place = PurePosixPath(file) if isinstance(file, str) else None
        if place is None or place.is_absolute() or ".." in place.parts or place.suffix != WEIGHT_SUFFIX:
            raise ConfigError(
                f"{index} says that {shorten(name)} is in {shown(file)}, which is not a {WEIGHT_SUFFIX} file of this folder.",
                "A checkpoint's weights are in its own folder: download it again.",
            )
    return content
