"""Documents in a model's tokens, and the beginning-of-sequence token."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ropectl.data.byte_counts import ByteCount
from ropectl.errors import ConfigError, DataError
from ropectl.hf.run_names import BOS_POLICIES
from ropectl.names import unknown_choice

#: Tokens, and first character and the one after the last of each where they are known.
Encoding = tuple[list[int], list[tuple[int, int]] | None]


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
    """A document, or a window of one, as the model reads it.

    Attributes:
        name: The document's name; of a window with its number in the document, counted from 1: ``novel.txt[3]``.
        input_ids: Its first tokens, after the beginning-of-sequence token where there is one.
        byte_count: Returns the UTF-8 bytes of the text of tokens ``[start, stop)``; None where that is unknown.
    """

    name: str
    input_ids: list[int]
    byte_count: ByteCount | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class PossibleWindows:
    """The windows that documents could be cut into.

    Attributes:
        size: Tokens of each.
        count: How many there are.
        is_least: Whether there may be more: counting a long text stopped early.
    """

    size: int
    count: int
    is_least: bool


@dataclass(frozen=True)
class DocumentSet:
    """The documents, or windows of documents, that every length of one measurement is scored on.

    Attributes:
        documents: Each at least ``length`` tokens, cut there, or where the wanted part of a document ends.
        length: The longest wanted length that some document has [tokens]; 0 if there is none.
        num_seen: Documents that were read.
        longest: Tokens of the longest document seen; a lower bound where reading stopped early.
        bos_token_id: The token that every document begins with; None for none.
        clusters: Index of the source document of each entry of ``documents``; by default each is one of its own.
        split: Tokens of each window; None where documents were not cut into windows.
        possible: The windows that they could be cut into, where they are few and were not.
    """

    documents: list[TokenizedDocument]
    length: int
    num_seen: int
    longest: int
    bos_token_id: int | None
    clusters: list[int] = field(default_factory=list)
    split: int | None = None
    possible: PossibleWindows | None = None

    def __post_init__(self) -> None:
        if not self.clusters:
            object.__setattr__(self, "clusters", list(range(len(self.documents))))

    @property
    def shared_clusters(self) -> list[int]:
        """The clusters as records have them: empty where each entry is a document of its own."""
        return self.clusters if len(set(self.clusters)) < len(self.clusters) else []

    def fingerprint(self) -> str:
        """Returns a hash of all tokens: equal fingerprints mean the same targets."""
        text = json.dumps([document.input_ids for document in self.documents])
        return hashlib.sha256(text.encode()).hexdigest()


def encode_fragment(tokenizer: Any, text: str, contexts: dict[str, list[int]] | None = None) -> list[int]:
    """Returns the tokens of a text as part of a longer one.

    SentencePiece tokenizers put a space before whatever they are given. The text is therefore tokenized
    after a short context, whose tokens are then removed.

    Args:
        tokenizer: A Hugging Face tokenizer.
        text: Any text but an empty one.
        contexts: Remembers the tokens of the two contexts from call to call with the same tokenizer.
    """

    def plain(part: str) -> Encoding:
        return list(tokenizer.encode(part, add_special_tokens=False, verbose=False)), None

    return fragment_encoding(plain, text, contexts)[0]


def fragment_encoding(
    encode: Callable[[str], Encoding], text: str, contexts: dict[str, list[int]] | None = None
) -> Encoding:
    """Returns the tokens of a text as part of a longer one, with the characters of each where ``encode`` tells them.

    Args:
        encode: Tokenizes a text on its own, without special tokens.
        text: Any text but an empty one.
        contexts: As for :func:`encode_fragment`.
    """
    contexts = {} if contexts is None else contexts
    context = "a" if text[0].isspace() else "\n"
    if context not in contexts:
        contexts[context] = encode(context)[0]
    num_context = len(contexts[context])
    ids, offsets = encode(context + text)
    if ids[:num_context] != contexts[context]:
        return encode(text)
    if offsets is not None:
        offsets = [(start - len(context), end - len(context)) for start, end in offsets[num_context:]]
    return ids[num_context:], offsets


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
