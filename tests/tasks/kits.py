"""What the tests build prompts with: the built-in tokenizer, or one that puts spaces in front, and a text of their own."""

from __future__ import annotations

import random
from typing import Any

from ropectl.data.chat import ChatFrame
from ropectl.data.documents import Document
from ropectl.tasks.haystack import TextStream
from ropectl.tasks.kit import PromptKit

BOS = 0


def story(name: str, words: int = 3000) -> Document:
    """Seeded lower-case words, of which none is a task's."""
    rng = random.Random(name)
    return Document(name, " ".join("".join(rng.choices("xqjz", k=rng.randint(2, 6))) for _ in range(words)))


def make_kit(tokenizer: Any, seed: int = 0, chat: ChatFrame | None = None, bos: int | None = BOS) -> PromptKit:
    """A kit over three stories."""
    stream = TextStream("stories", iter([story("a"), story("b"), story("c")]), tokenizer)
    return PromptKit(tokenizer, bos, stream, seed, chat)


def spaced_tokenizer() -> Any:
    """SentencePiece style, a token a character: whatever is encoded gets a space in front."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = [chr(code) for code in range(32, 127)] + ["\u2581", "\n"]
    inner = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.decoder = decoders.Metaspace(prepend_scheme="always")
    return PreTrainedTokenizerFast(tokenizer_object=inner)
