"""Checks the files of a tokenizer before libraries read them, and that its words are the model's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.file_reading import MAX_TEXT, check_size
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.source import ModelSource
from ropectl.json_reading import read_object

#: Small files, which are objects, and large ones, whose content their library checks.
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json")
_WORDS = ("tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "tokenizer.model", "chat_template.jinja")


def check_tokenizer_files(source: ModelSource) -> None:
    """Checks that the files of a local tokenizer are ordinary ones of a possible size, and its settings JSON objects.

    Raises:
        ConfigError: Naming the file.
    """
    folder = Path(source.tokenizer_location)
    if source.gguf_file is not None or not folder.is_dir():
        return
    for name in _SETTINGS:
        if os.path.lexists(folder / name):
            read_object(folder / name)
    for name in _WORDS:
        if os.path.lexists(folder / name):
            check_size(folder / name, MAX_TEXT)


def check_vocabulary(tokenizer: Any, source: ModelSource) -> None:
    """Checks that the model knows the tokenizer's words; added ones that no text holds may be too many.

    Raises:
        ConfigError: With both numbers.
    """
    known = text_section(source.config).get("vocab_size")
    words = int(tokenizer.vocab_size)
    used = [number for number in (tokenizer.bos_token_id, tokenizer.eos_token_id) if number is not None]
    if isinstance(known, int) and max([words - 1, *used]) >= known:
        raise ConfigError(
            f"The tokenizer of {source.name} has {max([words, *(number + 1 for number in used)])} words, and the model knows "
            f"{known} (vocab_size): they do not belong together.",
            "Give tokenizer and weights from the same checkpoint.",
        )
