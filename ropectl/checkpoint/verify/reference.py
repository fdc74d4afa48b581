"""The folder that a GGUF file was converted from, computed in transformers in place of the file."""

from __future__ import annotations

from ropectl.errors import ConfigError
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.source import ModelSource, read_config

#: Sizes that a conversion keeps.
_KEPT = ("hidden_size", "num_attention_heads", "vocab_size")


def read_reference(
    folder: str, file: ModelSource, original_length: int | None, trust_remote_code: bool, strict: bool
) -> ModelSource:
    """Returns the folder, after comparing its sizes with those of the file.

    Args:
        folder: The folder, or its hub id.
        file: The GGUF file.
        original_length: The trained length, where the config does not give it [tokens].
        trust_remote_code: Run code that comes with the folder.
        strict: Treat warnings about its config as errors.

    Raises:
        ConfigError: If the checkpoint is no GGUF file, the folder is one, or their sizes differ.
    """
    if file.gguf_file is None:
        raise ConfigError(
            f"--reference is for GGUF files, and {file.name} is not one.", "It is its own reference: leave it out."
        )
    reference = read_config(folder, None, original_length, trust_remote_code, strict=strict)
    if reference.gguf_file is not None:
        raise ConfigError(
            f"reference = {folder!r} is a GGUF file.", "Name the folder that the file was converted from."
        )
    own, other = text_section(file.config), text_section(reference.config)
    for key in _KEPT:
        one, two = own.get(key), other.get(key)
        if one is not None and two is not None and one != two:
            raise ConfigError(
                f"{file.name} was not converted from {folder}: its {key} is {one}, the folder's {two}.",
                "Name the folder that it was converted from: --reference FOLDER",
            )
    dims = [source.rope.geometry.rotary_dim for source in (file, reference)]
    if dims[0] != dims[1]:
        raise ConfigError(
            f"{file.name} was not converted from {folder}: it rotates {dims[0]} dimensions of a head, the folder {dims[1]}."
        )
    return reference
