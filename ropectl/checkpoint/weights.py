"""Weights that cannot be copied as they are: GGUF files and merged adapters are loaded and saved once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ropectl.checkpoint.files import PICKLE_SUFFIXES, FileList, check_weights, list_files
from ropectl.checkpoint.hub import download
from ropectl.checkpoint.logits import checkpoint_dtype
from ropectl.errors import RopectlError
from ropectl.hf.config.source import ModelSource
from ropectl.hf.model.loading import LoadOptions, load_model, load_tokenizer

#: What an adapter may bring in place of its base's.
_TOKENIZER_FILES = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
)

#: Not copied beside weights that are rewritten: these describe the old ones.
_OF_WEIGHTS = (".safetensors", ".safetensors.index.json", ".bin.index.json")


def source_places(source: ModelSource) -> tuple[Path, ...]:
    """Returns the local files and folders that a model is read from: none of them may be written to."""
    places = [Path(source.location) / (source.gguf_file or "")]
    if source.adapter is not None:
        places.append(source.adapter.path)
    return tuple(place for place in places if place.exists())


def source_files(source: ModelSource, allow_pickle: bool) -> FileList:
    """Returns the files that a checkpoint consists of, fetched from the hub where it is there.

    Raises:
        ConfigError: If weights are missing or incomplete.
    """
    folder = Path(source.location)
    if not folder.is_dir():
        folder = download(source.location, source.commit, allow_pickle)
    files = list_files(folder, allow_pickle)
    check_weights(files)
    return files


def is_rewritten(source: ModelSource, merge: bool) -> bool:
    """Returns whether the weights have to be loaded and saved to become a checkpoint."""
    return source.gguf_file is not None or (source.adapter is not None and merge)


def write_weights(source: ModelSource, out: Path, options: LoadOptions, note: Callable[[str], None]) -> None:
    """Loads the model and saves it to a folder, with tokenizer, and the base's other files where it has any.

    Raises:
        RopectlError: If saving fails.
    """
    dtype = written_dtype(source, options.dtype)
    if source.gguf_file is not None and options.dtype == "auto":
        note(
            "GGUF weights are written as float32, which is exact for dequantised values. Half the size: --dtype bfloat16"
        )
    options = LoadOptions(**{**vars(options), "dtype": dtype, "device": "cpu"})
    copy_other_files(source, out, options.allow_pickle)
    save_model(load_model(source, options), source, out, options)


def save_model(model: Any, source: ModelSource, out: Path, options: LoadOptions) -> None:
    """Saves a model to a folder, with a tokenizer where the source is one file that holds both.

    Args:
        model: A live model, in the type that is to be written.
        source: Where it came from.
        out: The folder.
        options: How the source is loaded.

    Raises:
        RopectlError: If saving fails.
    """
    try:
        model.save_pretrained(out)
        if source.gguf_file is not None:
            tokenizer = load_tokenizer(source, options)
            tokenizer.model_max_length = model.config.get_text_config().max_position_embeddings  # it had been lifted
            tokenizer.save_pretrained(out)
        _readable(out)
    except OSError as error:
        raise RopectlError(f"The weights cannot be saved to {out.parent}: {error.strerror or error}.") from None


def _readable(folder: Path) -> None:
    """Gives weight files the permissions of any new file; safetensors makes them private."""
    (folder / "probe").touch()
    mode = (folder / "probe").stat().st_mode
    (folder / "probe").unlink()
    for path in folder.glob("*.safetensors"):
        path.chmod(mode)


def written_dtype(source: ModelSource, dtype: str) -> str:
    """Returns the type in which new weights are written; ``auto`` is the source's own, float32 for GGUF."""
    if dtype != "auto":
        return dtype
    return "float32" if source.gguf_file is not None else checkpoint_dtype(source.config)


def copy_other_files(source: ModelSource, out: Path, allow_pickle: bool) -> None:
    """Copies what stands beside the weights of a source: tokenizer, generation settings, model card."""
    if source.gguf_file is not None:
        return
    files = source_files(source, allow_pickle)
    for name in files.kept:
        if not name.endswith((*_OF_WEIGHTS, *PICKLE_SUFFIXES)):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(files.root / name, out / name)
    if source.adapter is not None and source.tokenizer_location == str(source.adapter.path):
        for pattern in _TOKENIZER_FILES:
            for path in source.adapter.path.glob(pattern):
                shutil.copyfile(path, out / path.name)
