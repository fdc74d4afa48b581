"""Asks for the most frequent words where frequencies follow a power law."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cache

from pydantic import Field

from ropectl.tasks.haystack import listing
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import BodyLayout, TrialText
from ropectl.tasks.task import CONTAINED, RULER, RetrievalTask
from ropectl.tasks.words import draw_invented

#: Words that are asked for.
ASKED = 3

#: Ranks that the law's normalisation counts.
NUM_RANKS = 10_000


class FrequentWords(RetrievalTask):
    """The whole context is invented words whose frequency falls with a power of their rank; the top three are asked for."""

    name = "frequent-words"
    title = "Most frequent words"
    reference = RULER
    measures = "whether frequencies of unknown words are compared over the whole context"
    instruction = "Below is a text of invented words. Some occur more often than others.\n\n"
    metric = CONTAINED

    alpha: float = Field(2.0, ge=1.1, le=3.5, description="the word of rank k occurs in proportion to k^-alpha")

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns the three most frequent words, in their order."""
        words = builder.draw_different(rng, draw_invented, ASKED)
        facts = tuple(f" {word}" for word in words)
        question = f"\n\nWhich {ASKED} words occur most often in the text?"
        return TrialText(facts, question, f" The {ASKED} most frequent words are", f" {listing(words)}.", tuple(words))

    def least_room(self, facts: Sequence[int]) -> int:
        """Returns a room in which the third and the fourth word differ by more than rounding."""
        gap: float = (ASKED**-self.alpha - (ASKED + 1) ** -self.alpha) / _norm(self.alpha)
        return math.ceil(1 / gap) * facts[0]

    def body(self, builder: PromptBuilder, facts: Sequence[list[int]], layout: BodyLayout) -> list[int]:
        """Returns the words, shuffled, as often as the law says; a last one may be cut."""
        num_words = layout.room // len(facts[0])
        counts = self.counts(num_words)
        words = list(facts)
        seen = {tuple(fact) for fact in facts}
        while len(words) <= len(counts):  # one more than there are ranks: the one that is cut
            word = builder.fragment(f" {builder.draw_different(layout.rng, draw_invented, 1)[0]}")
            if tuple(word) not in seen:
                seen.add(tuple(word))
                words.append(word)
        pieces = [word for word, count in zip(words, counts, strict=False) for _ in range(count)]
        layout.rng.shuffle(pieces)
        result = [token for piece in pieces for token in piece]
        return result + words[-1][: layout.room - len(result)]

    def counts(self, num_words: int) -> list[int]:
        """Returns how often each rank occurs among so many words."""
        counts: list[int] = []
        left, norm = num_words, _norm(self.alpha)
        while left:
            rank = len(counts) + 1
            counts.append(min(left, max(1, round(num_words * rank**-self.alpha / norm))))
            left -= counts[-1]
        return counts


@cache
def _norm(alpha: float) -> float:
    return math.fsum(rank**-alpha for rank in range(1, NUM_RANKS + 1))
