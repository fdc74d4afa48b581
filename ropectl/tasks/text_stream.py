"""The user's own text as an endless stream of tokens, read no further than needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ropectl.data.documents import Document
from ropectl.data.tokens import check_vocabulary, encode_fragment
from ropectl.errors import DataError

#: A trial's window begins at one of so many first tokens of the stream: trials differ, and memory stays bounded.
START_RANGE = 32_768

#: A long document is tokenized in pieces of so many characters, or tokens.
PIECE = 1 << 18

#: The text between two documents.
BREAK = "\n\n"


class TextStream:
    """The documents of a source, tokenized piece by piece, joined, and repeated from the start when they end.

    The token at an index does not depend on earlier requests. Special tokens are left out: a prompt has only its own.

    Args:
        source: The name of the text in messages.
        documents: The documents in a stable order; read when needed.
        tokenizer: A Hugging Face tokenizer.
        vocabulary: Tokens that the model knows; None if that is not known.
    """

    def __init__(
        self, source: str, documents: Iterator[Document], tokenizer: Any, vocabulary: int | None = None
    ) -> None:
        self._source = source
        self._pieces = _pieces(documents)
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._special: Collection[int] = frozenset(tokenizer.all_special_ids)
        self._tokens: list[int] = []
        self._is_whole = False

    def window(self, start: int, count: int) -> list[int]:
        """Returns ``count`` tokens from index ``start`` on.

        Raises:
            DataError: If the source holds no text, or a token that the model does not know.
        """
        while len(self._tokens) < start + count and not self._is_whole:
            piece = next(self._pieces, None)
            if piece is None:
                self._is_whole = True
            else:
                self._tokens += self._read(piece)
        if not self._tokens and count:
            raise DataError(f"{self._source} holds no text to hide anything in.", "Give longer text: --text FILE")
        if start + count <= len(self._tokens):
            return self._tokens[start : start + count]
        return [self._tokens[index % len(self._tokens)] for index in range(start, start + count)]

    def repeats_within(self, count: int) -> int | None:
        """Returns how many tokens the source has, if it was read to its end and has fewer than ``count``; else None."""
        return len(self._tokens) if self._is_whole and len(self._tokens) < count else None

    def _read(self, document: Document) -> list[int]:
        if document.input_ids is not None:
            ids = list(document.input_ids)
        else:
            ids = encode_fragment(self._tokenizer, document.text) if document.text else []
        check_vocabulary(document.name, max(ids, default=0), self._vocabulary)
        return [token for token in ids if token not in self._special]


def _pieces(documents: Iterator[Document]) -> Iterator[Document]:
    for document in documents:
        if document.input_ids is not None:
            for start in range(0, len(document.input_ids), PIECE):
                yield Document(document.name, "", document.input_ids[start : start + PIECE])
        elif text := document.text.strip():
            for start in range(0, len(text), PIECE):
                end = BREAK if start + PIECE >= len(text) else ""
                yield Document(document.name, text[start : start + PIECE] + end)
