"""Asks for the most common words of a list."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pydantic import Field

from ropectl.tasks.haystack import listing
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import BodyLayout, TrialText
from ropectl.tasks.task import CONTAINED, RULER, RetrievalTask
from ropectl.tasks.words import WORDS, other_words

#: Occurrences of a common word in even the shortest list, where other words occur once.
LEAST_TIMES = 3


class CommonWords(RetrievalTask):
    """The whole context is a shuffled list of words, of which a few occur often and the others seldom."""

    name = "common-words"
    title = "Most common words"
    reference = RULER
    measures = "whether counts are gathered over the whole context"
    instruction = "Below is a long list of words. A few of them occur much more often than the others.\n\n"
    metric = CONTAINED

    common: int = Field(10, ge=1, le=20, description="common words, all asked for")
    times: int = Field(30, ge=LEAST_TIMES, le=1000, description="times a common word occurs; fewer in a short prompt")
    others: int = Field(3, ge=1, le=100, description="times another word occurs, at most a third of the common ones")

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns the common words."""
        words = builder.draw_different(rng, draw_word, self.common)
        question = f"\n\nWhich {self.common} words occur most often in the list?"
        prefix = f" The {self.common} most common words are"
        return TrialText(tuple(f" {word}" for word in words), question, prefix, f" {listing(words)}.", tuple(words))

    def least_room(self, facts: Sequence[int]) -> int:
        """Returns a room that is half common words, each often enough."""
        return 2 * LEAST_TIMES * sum(facts)

    def body(self, builder: PromptBuilder, facts: Sequence[list[int]], layout: BodyLayout) -> list[int]:
        """Returns the shuffled list; common words fill half of a short one, and less the longer it is."""
        times = min(self.times, layout.room // (2 * sum(map(len, facts))))
        others = max(1, min(self.others, times // 3))
        pieces = [fact for fact in facts for _ in range(times)]
        room = layout.room - sum(map(len, pieces))
        words = other_words(layout.rng, {builder.tokenizer.decode(fact).strip() for fact in facts})
        rest = builder.fragment(f" {next(words)}")
        while others * len(rest) <= room:
            pieces += [rest] * others
            room -= others * len(rest)
            rest = builder.fragment(f" {next(words)}")
        layout.rng.shuffle(pieces)
        result = [token for piece in pieces for token in piece]
        while len(result) < layout.room:  # single words for what is left over, the last one cut
            result += rest
            rest = builder.fragment(f" {next(words)}")
        return result[: layout.room]


def draw_word(rng: random.Random) -> str:
    """Returns a plain word."""
    return rng.choice(WORDS)
