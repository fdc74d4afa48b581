"""What tasks build prompts with: one tokenizer, one seed, one text, one frame."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from ropectl.data.chat import ChatFrame
from ropectl.data.passkey_wording import FILLER
from ropectl.data.tokens import encode_fragment
from ropectl.errors import ConfigError
from ropectl.tasks.haystack import START_RANGE, TextStream

Value = TypeVar("Value")

_NAMESPACE = "ropectl-tasks"

#: Draws that decide which size is typical, and draws after which no more of that size are expected.
SAMPLE, MAX_DRAWS = 48, 20_000


class PromptKit:
    """Builds the pieces of prompts in token space; no piece is ever decoded and encoded again.

    Args:
        tokenizer: A Hugging Face tokenizer.
        bos_token_id: Put first in every prompt; None for none.
        text: The user's text as tokens.
        seed: Decides everything that is drawn, together with task, place and trial.
        chat: What a chat template puts around a task's text; None for plain text.
    """

    def __init__(
        self, tokenizer: Any, bos_token_id: int | None, text: TextStream, seed: int = 0, chat: ChatFrame | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.bos_token_id = bos_token_id
        self.seed = seed
        self.chat = chat
        self._text = text
        self._memory: dict[Any, Any] = {}

    def rng(self, *parts: object) -> random.Random:
        """Returns a generator that depends on the seed and the parts alone: task, place, trial."""
        return random.Random(":".join(map(str, (_NAMESPACE, self.seed, *parts))))

    def once(self, key: Any, make: Callable[[], Value]) -> Value:
        """Returns what ``make`` made the first time it was asked for under this key."""
        if key not in self._memory:
            self._memory[key] = make()
        value: Value = self._memory[key]
        return value

    def fragment(self, text: str) -> list[int]:
        """Returns the tokens of a text as it stands inside a longer one."""
        return encode_fragment(self.tokenizer, text)

    def head(self, instruction: str) -> list[int]:
        """Returns the tokens of everything before the body, the first token decided: by a chat template, or by ``bos``."""

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
        if kind == "text":
            return self._text.window(rng.randrange(START_RANGE), count)
        start = rng.randrange(len(FILLER))
        first, following = self.once("filler", self._filler_sentences)
        tokens = list(first[start])
        while len(tokens) < count:
            start = (start + 1) % len(FILLER)
            tokens += following[start]
        return tokens[:count]

    def _filler_sentences(self) -> tuple[list[list[int]], list[list[int]]]:
        return [self.fragment(s) for s in FILLER], [self.fragment(f" {s}") for s in FILLER]

    def draw_typical(self, rng: random.Random, draw: Callable[[random.Random], str]) -> str:
        """Draws a word whose number of tokens behind a space is the most frequent one.

        Words of one size make prompts whose parts have fixed lengths, whatever is drawn.

        Args:
            rng: The trial's.
            draw: Returns a word; a function with a name of its own.
        """

        def size(word: str) -> int:
            return len(self.fragment(f" {word}"))

        def typical() -> int:
            sample = random.Random("ropectl-typical")
            return Counter(size(draw(sample)) for _ in range(SAMPLE)).most_common(1)[0][0]

        wanted = self.once(("typical", draw), typical)
        for _ in range(MAX_DRAWS):
            word = draw(rng)
            if size(word) == wanted:
                return word
        raise ConfigError(f"This tokenizer makes no words of {wanted} tokens out of those that a task draws.")

    def draw_different(self, rng: random.Random, draw: Callable[[random.Random], str], count: int) -> list[str]:
        """Draws so many different typical words."""
        words: list[str] = []
        for _ in range(MAX_DRAWS):
            if len(words) == count:
                return words
            word = self.draw_typical(rng, draw)
            if word not in words:
                words.append(word)
        raise ConfigError(f"This tokenizer has fewer than {count} words of one length for a task.")
