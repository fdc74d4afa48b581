"""Builds the parts of prompts from one tokenizer, one seed, one text and one chat template."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

from ropectl.data.tokens import encode_fragment
from ropectl.errors import ConfigError
from ropectl.tasks.chat import ChatTurn
from ropectl.tasks.text_stream import START_RANGE, TextStream
from ropectl.tasks.words import FILLER

Value = TypeVar("Value")

#: Draws that decide which size is typical, and draws after which no more of that size are expected.
SAMPLE, MAX_DRAWS = 48, 20_000

#: So many tokenized fragments are remembered at a time.
MAX_REMEMBERED = 256


class PromptBuilder:
    """Builds the parts of prompts in token space; no part is ever decoded and encoded again.

    Args:
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first in every prompt; None for none. A chat template decides about that itself.
        seed: Decides everything that is drawn, together with task, place and trial.
        text: The user's text as tokens; None where no task hides anything in it.
        chat: What a chat template puts around a task's text; None for plain text.
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

    def __getstate__(self) -> dict[str, Any]:
        """Returns what another process needs; it makes anew what is only remembered."""
        return {**vars(self), "_memory": {}, "_encoded": {}}

    @property
    def prompt_format(self) -> str:
        """``raw`` for plain text, ``chat`` with the chat template around it."""
        return "chat" if self.chat else "raw"

    def rng(self, *parts: object, family: str = "ropectl-tasks") -> random.Random:
        """Returns a generator that depends on the seed and the parts alone: task, place, trial.

        Args:
            parts: What the draws depend on.
            family: Names a sequence of prompts; under another name everything that is drawn is different.
        """
        return random.Random(":".join(map(str, (family + self._suffix, self.seed, *parts))))

    def once(self, key: Any, make: Callable[[], Value]) -> Value:
        """Returns what ``make`` made the first time it was asked for under this key."""
        if key not in self._memory:
            self._memory[key] = make()
        value: Value = self._memory[key]
        return value

    def fragment(self, text: str) -> list[int]:
        """Returns the tokens of a text as it stands inside a longer one."""
        if text not in self._encoded:  # one prompt needs the same ones several times: for their sizes, and for itself
            if len(self._encoded) >= MAX_REMEMBERED:
                self._encoded.clear()
            self._encoded[text] = encode_fragment(self.tokenizer, text)
        return list(self._encoded[text])

    def text(self, tokens: list[int]) -> str:
        """Returns the text of some tokens, special ones written out."""
        text: str = self.tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
        return text

    def head(self, instruction: str) -> list[int]:
        """Returns the tokens of everything before the body; the first one is decided by a chat template, or by ``bos``."""

        def make() -> list[int]:
            if self.chat is None:
                return ([] if self.bos_token_id is None else [self.bos_token_id]) + self.fragment(instruction)
            return list(self.tokenizer.encode(self.chat.before + instruction, add_special_tokens=False, verbose=False))

        return self.once(("head", instruction), make)

    def tail(self, question: str, prefix: str) -> list[int]:
        """Returns the tokens of everything behind the body: the question, and the words that open the answer."""
        return self.fragment(self._tail_text(question, prefix))

    def answer(self, question: str, prefix: str, answer: str) -> list[int] | None:
        """Returns the tokens that an answer adds behind the tail; None where the tokenizer joins the two."""
        tail = self.tail(question, prefix)
        ids = self.fragment(self._tail_text(question, prefix) + answer)
        return ids[len(tail) :] if ids[: len(tail)] == tail else None

    def _tail_text(self, question: str, prefix: str) -> str:
        if self.chat is None:
            return question + prefix
        return question + self.chat.after + prefix.lstrip()  # the assistant's turn begins with the words themselves

    def haystack(self, kind: str, count: int, *parts: object) -> list[int]:
        """Returns ``count`` tokens to hide things in.

        Fewer tokens are the beginning of more: prompts that share all before them share these too.

        Args:
            kind: ``text`` for the user's text, ``filler`` for the five sentences of the passkey task.
            count: How many [tokens].
            parts: Task and trial; they decide where the haystack begins.
        """
        rng = self.rng(*parts, "haystack")
        if kind == "filler":
            return self.filler(rng, count)
        assert self._text is not None, "a task that hides something in the user's text is given one"
        return self._text.window(rng.randrange(START_RANGE), count)

    def filler(self, rng: random.Random, count: int) -> list[int]:
        """Returns the five published sentences in their order, over and over, from a random one on: ``count`` tokens."""
        sentence = rng.randrange(len(FILLER))
        first, following = self.once("filler", self._filler_sentences)
        tokens = list(first[sentence])
        while len(tokens) < count:
            sentence = (sentence + 1) % len(FILLER)
            tokens += following[sentence]
        return list(islice(tokens, count))

    def _filler_sentences(self) -> tuple[list[list[int]], list[list[int]]]:
        """Returns each sentence as the first of a line, and as one that follows another."""
        return [self.fragment(s) for s in FILLER], [self.fragment(f" {s}") for s in FILLER]

    def draw_typical(self, rng: random.Random, draw: Callable[[random.Random], str]) -> str:
        """Draws a word whose number of tokens behind a space is the most frequent one.

        Words of one size make prompts whose parts have fixed lengths, whatever is drawn.

        Args:
            rng: The trial's.
            draw: Returns a word; a function with a name of its own.

        Raises:
            ConfigError: If the tokenizer makes hardly any words of that size.
        """
        return self.draw_different(rng, draw, 1)[0]

    def draw_different(self, rng: random.Random, draw: Callable[[random.Random], str], count: int) -> list[str]:
        """Draws ``count`` different words, each of the typical size of :meth:`draw_typical`.

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
        ConfigError: If none of very many does.
    """
    for _ in range(MAX_DRAWS):
        word = draw(rng)
        if fits(word):
            return word
    raise ConfigError("This tokenizer makes too few different words of one length for a task.")
