"""Selects and tokenizes documents, and decides on the beginning-of-sequence token."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ropectl.data.byte_counts import (
    DECODE_MARGIN,
    ByteCount,
    count_by_decoding,
    count_by_offsets,
    count_of_tokens,
    encode_with_offsets,
)
from ropectl.data.documents import Document
from ropectl.errors import ConfigError, DataError
from ropectl.hf.run_names import BOS_POLICIES
from ropectl.names import unknown_choice

#: Characters that are tokenized at first for each wanted token; the rest follows where tokens turn out longer.
CHARACTERS_PER_TOKEN = 16

#: Tokens before a cut that the cut may have changed.
CUT_MARGIN = 256


def bos_token(tokenizer: Any, policy: str) -> int | None:
    """Returns the token to put first in every window and prompt, or None for none.

    Args:
        tokenizer: A Hugging Face tokenizer.
        policy: ``auto`` does what the tokenizer itself does; ``always``; ``available`` puts it wherever the
            tokenizer has one; ``never``.

    Raises:
        ConfigError: If the policy is unknown, or ``always`` meets a tokenizer without such a token.
    """
    if policy not in BOS_POLICIES:
        raise unknown_choice("bos", policy, BOS_POLICIES)
    bos: int | None = tokenizer.bos_token_id
    if policy == "always" and bos is None:
        raise ConfigError(
            "bos = always is not possible: this tokenizer has no beginning-of-sequence token.", "Type: --bos auto"
        )
    if policy == "never" or bos is None:
        return None
    if policy == "auto" and tokenizer.encode("a")[:1] != [bos]:
        return None
    return bos


@dataclass(frozen=True)
class TokenizedDocument:
    """A document as the model reads it.

    Attributes:
        name: The document's name.
        input_ids: Its first tokens, after the beginning-of-sequence token where there is one.
        byte_count: Returns the UTF-8 bytes of the text of tokens ``[start, stop)``; None where that is unknown.
    """

    name: str
    input_ids: list[int]
    byte_count: ByteCount | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class DocumentSet:
    """The documents that every length of one measurement is scored on.

    Attributes:
        documents: Each at least ``length`` tokens, cut there, or where the wanted part of a document ends.
        length: The longest wanted length that some document has [tokens]; 0 if there is none.
        num_seen: Documents that were read.
        longest: Tokens of the longest document seen; a lower bound where reading stopped early.
        bos_token_id: The token that every document begins with; None for none.
        clusters: The source document of each; None where each is one of its own.
    """

    documents: list[TokenizedDocument]
    length: int
    num_seen: int
    longest: int
    bos_token_id: int | None
    clusters: Sequence[int] | None = None

    def fingerprint(self) -> str:
        """Returns a hash of all tokens: equal fingerprints mean the same targets."""
        text = json.dumps([document.input_ids for document in self.documents])
        return hashlib.sha256(text.encode()).hexdigest()


def select_documents(
    documents: Iterable[Document],
    tokenizer: Any,
    bos_token_id: int | None,
    lengths: list[int],
    limit: int,
    vocabulary: int | None = None,
    document_tokens: int | None = None,
) -> DocumentSet:
    """Returns the first ``limit`` documents that have the longest wanted length.

    Reading stops once they are found, so memory is bounded by them. Where no document is that long, the
    next shorter wanted length decides, and so on.

    Args:
        documents: In the source's order.
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first; None for none.
        lengths: Wanted context lengths [tokens].
        limit: Most documents to take.
        vocabulary: Tokens that the model knows; None if that is not known.
        document_tokens: Most tokens of a document to take; None cuts all at the length that decides.

    Raises:
        DataError: If a pre-tokenized document holds a token that the model does not know.
    """
    wanted = sorted(set(lengths), reverse=True)
    most = max(wanted[0], document_tokens or 0)
    by_length: dict[int, list[TokenizedDocument]] = {length: [] for length in wanted}
    head = [] if bos_token_id is None else [bos_token_id]
    num_seen = longest = 0
    for document in documents:
        num_seen += 1
        ids, offsets = _document_tokens(document, tokenizer, head, most)
        check_vocabulary(document.name, max(ids, default=0), vocabulary)
        longest = max(longest, len(ids))
        open_lengths = [length for length in wanted if len(ids) >= length and len(by_length[length]) < limit]
        if open_lengths:
            counter = _byte_count(document, tokenizer, ids, offsets, head, min(len(ids), most))
            kept = TokenizedDocument(document.name, ids[:document_tokens], counter)
        for length in open_lengths:
            by_length[length].append(kept if document_tokens else replace(kept, input_ids=ids[:length]))
        if len(by_length[wanted[0]]) == limit:
            break
    length = next((length for length in wanted if by_length[length]), 0)
    return DocumentSet(by_length.get(length, []), length, num_seen, longest, bos_token_id)


def encode_fragment(tokenizer: Any, text: str, contexts: dict[str, list[int]] | None = None) -> list[int]:
    """Returns the tokens of a text as part of a longer one.

    SentencePiece tokenizers put a space before whatever they are given. The text is therefore tokenized
    after a short context, whose tokens are then removed.

    Args:
        tokenizer: A Hugging Face tokenizer.
        text: Any text but an empty one.
        contexts: Remembers the tokens of the two contexts from call to call with the same tokenizer.
    """
    contexts = {} if contexts is None else contexts
    context = "a" if text[0].isspace() else "\n"
    if context not in contexts:
        contexts[context] = tokenizer.encode(context, add_special_tokens=False, verbose=False)
    context_ids = contexts[context]
    ids: list[int] = tokenizer.encode(context + text, add_special_tokens=False, verbose=False)
    if ids[: len(context_ids)] == context_ids:
        return ids[len(context_ids) :]
    return list(tokenizer.encode(text, add_special_tokens=False, verbose=False))


def check_vocabulary(name: str, largest: int, vocabulary: int | None) -> None:
    """Checks that the model knows every token of a document or source.

    Args:
        name: The document or source, for the message.
        largest: Its largest token.
        vocabulary: Tokens that the model knows; None if that is not known.

    Raises:
        DataError: If the model does not know the largest token.
    """
    if vocabulary is not None and largest >= vocabulary:
        raise DataError(
            f"{name} holds the token {largest}, but the model knows {vocabulary} tokens (0 to {vocabulary - 1}): "
            "it was made with another tokenizer.",
            "Give the text instead, for example: --text SOURCE#text",
        )


_Offsets = list[tuple[int, int]] | None


def _document_tokens(document: Document, tokenizer: Any, head: list[int], count: int) -> tuple[list[int], _Offsets]:
    """Returns at least the first ``count`` tokens after ``head``, and the characters of each where they are known.

    A pre-tokenized document that already begins with the head does not get a second one.
    """
    if document.input_ids is None:
        ids, offsets = _first_tokens(tokenizer, document.text, count)
        return head + ids, offsets
    ids = list(document.input_ids[: count + DECODE_MARGIN])
    return (ids if ids[: len(head)] == head else head + ids), None


def _first_tokens(tokenizer: Any, text: str, count: int) -> tuple[list[int], _Offsets]:
    """Returns at least the first ``count`` tokens of a text, without tokenizing much more of a long one.

    A cut can change the last tokens before it, so more are made than are kept.
    """
    cut = CHARACTERS_PER_TOKEN * (count + CUT_MARGIN)
    ids, offsets = encode_with_offsets(tokenizer, text[:cut])
    if len(text) > cut and len(ids) < count + CUT_MARGIN:
        ids, offsets = encode_with_offsets(tokenizer, text)
    return ids, offsets


def _byte_count(
    document: Document, tokenizer: Any, ids: list[int], offsets: _Offsets, head: list[int], count: int
) -> ByteCount | None:
    if document.input_ids is not None:
        return count_of_tokens(tokenizer, ids, len(head), count)
    if offsets is None:
        return count_by_decoding(tokenizer, ids[:count])
    return count_by_offsets(document.text, offsets[: count - len(head)], len(head))
