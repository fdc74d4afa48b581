"""The tokens that a program and transformers are both given."""

from __future__ import annotations

from ropectl.data.sources import open_source
from ropectl.errors import DataError
from ropectl.hf.config.source import ModelSource
from ropectl.hf.model.loading import LoadOptions, load_tokenizer


def text_ids(text: str, source: ModelSource, options: LoadOptions, length: int) -> list[int]:
    """Returns the beginning of the first document that is long enough.

    Args:
        text: The text, as ``--text`` names it.
        source: The checkpoint, for its tokenizer.
        options: How it is loaded.
        length: How many tokens.

    Raises:
        DataError: If no document has so many.
    """
    tokenizer = load_tokenizer(source, options)
    longest = 0
    for document in open_source(text):
        ids = list(document.input_ids or tokenizer(document.text[: 20 * length])["input_ids"])
        if len(ids) >= length:
            return ids[:length]
        longest = max(longest, len(ids))
    raise DataError(f"{text}: no document has {length} tokens; the longest has {longest}.", f"Use --length {longest}.")
