"""What the tests build prompts with: tokenizers of several kinds, and a text of their own."""

from __future__ import annotations

import copy
import random
from functools import cache
from typing import Any

from ropectl.data.documents import Document
from ropectl.tasks.chat import chat_turn
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.text_stream import TextStream

BOS = 0

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|user|>\n{{ m['content'] | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% if enable_thinking is defined and not enable_thinking %}"
    "<think></think>{% endif %}{% endif %}"
)


@cache
def story(name: str, words: int = 3000) -> Document:
    """Seeded lower-case words, of which none is a task's."""
    rng = random.Random(name)
    return Document(name, " ".join("".join(rng.choices("xqjz", k=rng.randint(2, 6))) for _ in range(words)))


def make_builder(tokenizer: Any, seed: int = 0, in_chat: bool = False, bos: int | None = BOS) -> PromptBuilder:
    """A prompt builder over three stories."""
    stream = TextStream("stories", iter([story("a"), story("b"), story("c")]), tokenizer)
    return PromptBuilder(tokenizer, bos, seed, stream, chat_turn(tokenizer) if in_chat else None)


def chatting_tokenizer(tokenizer: Any, template: str = TEMPLATE) -> Any:
    """The tokenizer with a chat template."""
    copied = copy.deepcopy(tokenizer)
    copied.chat_template = template
    return copied


def spaced_tokenizer() -> Any:
    """SentencePiece style, a token a character: whatever is encoded gets a space in front."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = [chr(code) for code in range(32, 127)] + ["\u2581", "\n"]
    inner = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.decoder = decoders.Metaspace(prepend_scheme="always")
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def merging_tokenizer() -> Any:
    """One that keeps a space with the word before it: the end of a question changes when the answer follows."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    alphabet = [chr(code) for code in range(32, 127)] + ["\n", "s "]
    inner = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[("s", " ")]))
    inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=inner)
