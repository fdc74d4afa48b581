"""The builder of prompt parts: one tokenizer, one seed, one text and one chat template."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from copy import copy
from itertools import islice
from typing import Any, TypeVar

from ropectl.data.tokens import encode_fragment
from ropectl.errors import ConfigError
from ropectl.tasks.chat import ChatTurn
from ropectl.tasks.text_stream import START_RANGE, TextStream
from ropectl.tasks.words import FILLER

Value = TypeVar("Value")

#: How many draws decide which size is typical, and after how many no further word of that size is expected.
SAMPLE, MAX_DRAWS = 48, 20_000

#: The most tokenized fragments that are remembered.
MAX_REMEMBERED = 256


class PromptBuilder:
    """Builds the parts of prompts in token space; no part is ever decoded and encoded again.

    Args:
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: The first token of every prompt; None for none. A chat template decides about it itself.
        seed: Decides everything that is drawn, together with task, place and trial.
        text: The user's text as tokens; None if no task hides anything in it.
        chat: The text that a chat template puts around a task's text; None for plain text.
        for_training: Draw other prompts than those that are measured, whatever the seeds.
    """

    def __init__(
        self,
        tokenizer: Any,
        bos_token_id: int | None = None,
        seed: int = 0,
        text: TextStream | None = None,
        chat: ChatTurn | None = None,
        for_training: bool = False,
    ) -> None:
        self.tokenizer = tokenizer
        self.bos_token_id = bos_token_id
        self.seed = seed
        self.chat = chat
        self._text = text
        self._suffix = "-training" if for_training else ""
        self._memory: dict[Any, Any] = {}
        self._encoded: dict[str, list[int]] = {}
        self._contexts: dict[str, list[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state that another process needs, without what is only remembered."""
        return {**vars(self), "_memory": {}, "_encoded": {}}

    def with_seed(self, seed: int) -> PromptBuilder:
        """Returns a builder that draws with another seed and shares everything else."""
        other = copy(self)
        other.seed, other._memory = seed, {}
        return other

    @property
    def prompt_format(self) -> str:
        """``raw`` for plain text, ``chat`` with the chat template around it."""
        return "chat" if self.chat else "raw"

    def rng(self, *parts: object, family: str = "ropectl-tasks") -> random.Random:
        """Returns a generator that depends only on the seed and the parts.

        Args:
            parts: Task, place and trial, or whatever the draws depend on.
            family: The name of a sequence of prompts; under another name everything that is drawn is different.
        """
        return random.Random(":".join(map(str, (family + self._suffix, self.seed, *parts))))

    def once(self, key: Any, make: Callable[[], Value]) -> Value:
        """Returns what ``make`` returned the first time it was called for this key."""
        if key not in self._memory:
            self._memory[key] = make()
        value: Value = self._memory[key]
        return value

    def fragment(self, text: str) -> list[int]:
        """Returns the tokens of a text in the middle of a longer one."""
        # A prompt needs the same fragments several times: for their sizes, and for the prompt itself.
        if text not in self._encoded:
            if len(self._encoded) >= MAX_REMEMBERED:
                self._encoded.clear()
            self._encoded[text] = encode_fragment(self.tokenizer, text, self._contexts)
        return list(self._encoded[text])

    def text(self, tokens: list[int]) -> str:
        """Returns the text of some tokens, special ones written out."""
        text: str = self.tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
        return text

    def head(self, instruction: str) -> list[int]:
        """Returns the tokens of everything before the body; a chat template or ``bos`` decides about the first."""

        def make() -> list[int]:
            if self.chat is None:
                return ([] if self.bos_token_id is None else [self.bos_token_id]) + self.fragment(instruction)
            return list(self.tokenizer.encode(self.chat.before + instruction, add_special_tokens=False, verbose=False))

        return self.once(("head", instruction), make)

    def tail(self, question: str, prefix: str) -> list[int]:
        """Returns the tokens of everything after the body: the question, and the words that open the answer."""
        return self.fragment(self._tail_text(question, prefix))

    def answer(self, question: str, prefix: str, answer: str) -> list[int] | None:
        """Returns the tokens that an answer adds to the tail; None if the tokenizer joins the two."""
        tail = self.tail(question, prefix)
        ids = self.fragment(self._tail_text(question, prefix) + answer)
        return ids[len(tail) :] if ids[: len(tail)] == tail else None

    def _tail_text(self, question: str, prefix: str) -> str:
        if self.chat is None:
            return question + prefix
        return question + self.chat.after + prefix.lstrip()  # the assistant's turn begins with the words themselves

    def haystack(self, kind: str, count: int, *parts: object) -> list[int]:
        """Returns ``count`` tokens to hide things in.

        Fewer tokens are the beginning of more: prompts with the same beginning share these too.

        Args:
            kind: ``text`` for the user's text, ``filler`` for the five sentences of the passkey task.
            count: How many [tokens].
            parts: Task and trial; they decide where in the text the haystack begins.
        """
        rng = self.rng(*parts, "haystack")
        if kind == "filler":
            return self.filler(rng, count)
        assert self._text is not None, "a task that hides something in the user's text needs one"
        return self._text.window(rng.randrange(START_RANGE), count)

    def filler(self, rng: random.Random, count: int) -> list[int]:
        """Returns ``count`` tokens of the five published sentences, repeated in their order from a random one on."""
        sentence = rng.randrange(len(FILLER))
        # Each sentence as the first of a line, and as one that follows another.
        first, following = self.once("filler", lambda: [[self.fragment(i + s) for s in FILLER] for i in ("", " ")])
        tokens = list(first[sentence])
        while len(tokens) < count:
            sentence = (sentence + 1) % len(FILLER)
            tokens += following[sentence]
        return list(islice(tokens, count))

    def draw_different(self, rng: random.Random, draw: Callable[[random.Random], str], count: int) -> list[str]:
        """Draws different words, each with the number of tokens after a space that is the most frequent one.

        Words of one size make prompts whose parts have fixed lengths, whatever is drawn.

        Args:
            rng: The trial's generator.
            draw: Returns a word; always the same function, because the typical size is found once for it.
            count: How many words.

        Raises:
            ConfigError: If the tokenizer makes too few words of that size.
        """

        def typical() -> int:
            sample = random.Random("ropectl-typical")
            return Counter(self._size(draw(sample)) for _ in range(SAMPLE)).most_common(1)[0][0]

        wanted = self.once(("typical", draw), typical)
        words: list[str] = []
        for _ in range(count):
            words.append(draw_until(rng, draw, lambda word: word not in words and self._size(word) == wanted))
        return words

    def _size(self, word: str) -> int:
        return len(self.fragment(f" {word}"))


def draw_until(rng: random.Random, draw: Callable[[random.Random], str], fits: Callable[[str], bool]) -> str:
    """Draws words until one fits.

    Raises:
        ConfigError: If none of very many fits.
    """
    for _ in range(MAX_DRAWS):
        word = draw(rng)
        if fits(word):
            return word
    raise ConfigError("This tokenizer makes too few different words of one length for a task.")
