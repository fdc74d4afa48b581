"""The weights of a source: where they are, fetched from the hub if need be, and written again where they cannot be copied.

GGUF files and merged adapters are loaded and saved once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ropectl.checkpoint.files import PICKLE_SUFFIXES, FileList, check_weights, list_files
from ropectl.errors import ConfigError, RopectlError
from ropectl.hf.config.source import ModelSource
from ropectl.hf.model.loading import LoadOptions, load_model, load_tokenizer, stored_dtype
from ropectl.printable import first_line

#: Files that an adapter may bring in place of its base's.
_TOKENIZER_FILES = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
)

#: Not copied to rewritten weights: these files hold or describe the old ones.
_OF_WEIGHTS = (".safetensors", ".safetensors.index.json", ".bin.index.json")

_DTYPES = ("float32", "bfloat16", "float16")


def source_places(source: ModelSource) -> tuple[Path, ...]:
    """Returns the local files and folders that a model is read from; none of them may be written to."""
    places = [Path(source.location) / (source.gguf_file or "")]
    if source.adapter is not None:
        places.append(source.adapter.path)
    return tuple(place for place in places if place.exists())


def source_files(source: ModelSource, allow_pickle: bool) -> FileList:
    """Returns the files of a checkpoint; what is missing in the hub's cache is fetched.

    Raises:
        ConfigError: If weights are missing or incomplete, or the hub cannot be reached.
    """
    folder = Path(source.location)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        ignored = None if allow_pickle else [f"*{suffix}" for suffix in PICKLE_SUFFIXES]
        try:
            folder = Path(snapshot_download(source.location, revision=source.commit, ignore_patterns=ignored))
        except Exception as error:  # the hub client raises many kinds
            raise _unreachable(source.location, error) from None
    files = list_files(folder, allow_pickle)
    check_weights(files)
    return files


def hub_sizes(name: str, commit: str | None) -> dict[str, int]:
    """Returns the files of a repository on the hub and their sizes [bytes].

    Raises:
        ConfigError: If the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(name, revision=commit, files_metadata=True)
    except Exception as error:  # the hub client raises many kinds
        raise _unreachable(name, error) from None
    return {file.rfilename: file.size or 0 for file in info.siblings or ()}


def _unreachable(name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"{name} cannot be fetched from the hub: {first_line(error)}", "Check the connection, or give a folder."
    )


def is_rewritten(source: ModelSource, merge: bool) -> bool:
    """Returns whether the weights have to be loaded and saved to become a checkpoint."""
    return source.gguf_file is not None or (source.adapter is not None and merge)


def write_weights(source: ModelSource, out: Path, options: LoadOptions, note: Callable[[str], None]) -> None:
    """Loads a model and saves it to a folder, with its tokenizer and the other files of the source.

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
        _make_readable(out)
    except OSError as error:
        raise RopectlError(f"The weights cannot be saved to {out.parent}: {error.strerror or error}.") from None


def _make_readable(folder: Path) -> None:
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


def checkpoint_dtype(config: Mapping[str, Any]) -> str:
    """Returns the type in which a checkpoint's weights are stored; float32 where its config names none that is known."""
    name = stored_dtype(config)
    return name if name in _DTYPES else "float32"


def copy_other_files(source: ModelSource, out: Path, allow_pickle: bool) -> None:
    """Copies all files of a source but its weights: tokenizer, generation settings, model card."""
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
