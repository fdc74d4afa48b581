"""A hash of a checkpoint without reading its weights."""

from __future__ import annotations

import os
from pathlib import Path

from ropectl.errors import ConfigError
from ropectl.file_reading import reason_of
from ropectl.hf.config.source import ModelSource
from ropectl.runs import content_id

_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf")


def model_fingerprint(source: ModelSource) -> str:
    """Returns a hash that changes when the checkpoint does: config, and names, sizes and times of weight files, or the hub's commit."""
    folder = Path(source.location)
    files: list[tuple[str, int, int]] = []
    if folder.is_dir():
        names = (
            [source.gguf_file]
            if source.gguf_file
            else sorted(path.name for path in folder.iterdir() if path.suffix in _WEIGHT_SUFFIXES)
        )
        # The built-in model is fixed by the package; its files' times change with every installation.
        stats = [(name, _stat(folder / name)) for name in names]
        builtin = source.name.startswith("builtin:")
        files = [(name, stat.st_size, 0 if builtin else stat.st_mtime_ns) for name, stat in stats]
    if source.adapter is not None:
        folder = source.adapter.path
        weights = [path for path in sorted(folder.iterdir()) if path.suffix in _WEIGHT_SUFFIXES]
        files += [(f"adapter/{path.name}", _stat(path).st_size, _stat(path).st_mtime_ns) for path in weights]
    return content_id({"config": dict(source.config), "files": files, "commit": source.commit})


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {reason_of(error)}.") from None
