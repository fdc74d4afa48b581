"""Weights that cannot be copied as they are: GGUF files and merged adapters are loaded and saved once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from ropectl.checkpoint.files import FileList, check_weights, list_files
from ropectl.checkpoint.hub import download
from ropectl.checkpoint.logits import checkpoint_dtype
from ropectl.errors import RopectlError
from ropectl.hf.loading import LoadOptions, load_model, load_tokenizer
from ropectl.hf.source import ModelSource

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
    dtype = options.dtype if options.dtype != "auto" else checkpoint_dtype(source.config)
    if source.gguf_file is not None and options.dtype == "auto":
        dtype = "float32"
        note(
            "GGUF weights are written as float32, which is exact for dequantised values. Half the size: --dtype bfloat16"
        )
    options = LoadOptions(**{**vars(options), "dtype": dtype, "device": "cpu"})
    if source.gguf_file is None:
        _copy_other_files(source, out, options.allow_pickle)
    tokenizer = load_tokenizer(source, options) if source.gguf_file is not None else None
    model = load_model(source, options)
    try:
        model.save_pretrained(out)
        if tokenizer is not None:
            limit = model.config.get_text_config().max_position_embeddings
            tokenizer.model_max_length = limit  # load_tokenizer had lifted it
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


def _copy_other_files(source: ModelSource, out: Path, allow_pickle: bool) -> None:
    files = source_files(source, allow_pickle)
    for name in files.kept:
        if not name.endswith(_OF_WEIGHTS):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(files.root / name, out / name)
    if source.adapter is not None and source.tokenizer_location == str(source.adapter.path):
        for pattern in _TOKENIZER_FILES:
            for path in source.adapter.path.glob(pattern):
                shutil.copyfile(path, out / path.name)
