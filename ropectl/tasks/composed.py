"""Tasks whose prompts are composed of an instruction, a body, a question, and the words that open the answer.

A prompt is a splice of token fragments::

    head (BOS, instruction) | body | tail (question, opening of the answer) | answer

The body takes what the other parts leave, to the token. In a task with depths those have fixed sizes, so that a
place is the same token in every trial: texts are drawn until they have the most frequent sizes.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ropectl.errors import ConfigError
from ropectl.tasks.prompt_builder import MAX_DRAWS, SAMPLE, PromptBuilder
from ropectl.tasks.task import CONTAINED, RetrievalTask
from ropectl.tasks.trial import Trial

#: A model may take so many times the tokens of the bare answer: a numbered list takes more than words with commas.
BUDGET_FACTOR = 3


@dataclass(frozen=True)
class TrialText:
    """The words of one trial: what it hides and what it asks.

    Attributes:
        facts: Texts that the body holds; in a task with depths the first is the one asked for.
        question: Behind the body; begins with a line break.
        prefix: The words that open the answer, a space in front.
        answer: The answer as it is written behind them, a space in front.
        references: What a generated answer must contain; empty where the answer is known token by token.
    """

    facts: tuple[str, ...]
    question: str
    prefix: str
    answer: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class BodyLayout:
    """The place that the body of one trial has to fill.

    Attributes:
        room: Its exact length [tokens].
        fact_start: Index in the body at which the asked fact begins; None for a task without depths.
        number: Index of the trial.
        rng: The trial's generator; its texts are drawn already.
    """

    room: int
    fact_start: int | None
    number: int
    rng: random.Random


class PartSizes(NamedTuple):
    """The sizes of a trial's parts [tokens]: each fact, the tail, and the known answer (0 where it is generated)."""

    facts: tuple[int, ...]
    tail: int
    answer: int


class PromptShape(NamedTuple):
    """The sizes of a task's prompts with one tokenizer [tokens].

    Attributes:
        head: Everything before the body.
        sizes: Those of a typical trial; none takes more, and in a task with depths the asked fact, the tail and
            the answer take the same.
        budget: The most that may be generated; 0 where the answer is known token by token.
    """

    head: int
    sizes: PartSizes
    budget: int


class ComposedTask(RetrievalTask):
    """A task that says what a trial hides and asks (:meth:`draw`) and how a body is made of it (:meth:`body`)."""

    #: Opens every prompt.
    instruction: ClassVar[str]

    @abstractmethod
    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns what a trial hides and asks, drawn from ``rng`` alone."""

    @abstractmethod
    def body(self, builder: PromptBuilder, facts: Sequence[list[int]], layout: BodyLayout) -> list[int]:
        """Returns the body, ``layout.room`` tokens that hold the facts."""

    def least_room(self, facts: Sequence[int]) -> int:
        """Returns the shortest body that holds facts of these lengths, wherever the asked one stands [tokens]."""
        others = facts[1:] if self.has_depths else ()
        # One fact's room more: there is then always a side of the asked fact with room for the next one.
        return sum(facts) + max(others, default=0)

    def samples(self, builder: PromptBuilder) -> list[TrialText]:
        """Returns the texts of some trials, always the same ones: their sizes decide those of all prompts."""
        rng = random.Random("ropectl-shape")
        return [self.draw(builder, rng) for _ in range(SAMPLE)]

    def generated_budget(self, builder: PromptBuilder, samples: Sequence[TrialText]) -> int:
        """Returns the most tokens of an answer that is generated."""
        return BUDGET_FACTOR * max(len(builder.fragment(text.answer)) for text in samples)

    def trial_rng(self, builder: PromptBuilder, length: int, position: int | None, number: int) -> random.Random:
        """Returns the generator of one trial; where the asked fact has a position, prompts of all lengths share it."""
        return builder.rng(self, length if position is None else f"at {position}", number)

    def shape(self, builder: PromptBuilder) -> PromptShape:
        """Returns the sizes of the task's prompts."""
        return builder.once(("shape", self), lambda: self._find_shape(builder))

    def min_length(self, builder: PromptBuilder) -> int:
        """Returns the shortest prompt that can be built, answer included [tokens]."""
        shape = self.shape(builder)
        return shape.head + self._least(shape.sizes) + shape.budget

    def position(self, builder: PromptBuilder, length: int, depth: float) -> int:
        """Returns where the asked fact goes: at its depth of the whole prompt, moved inside the body."""
        shape = self.shape(builder)
        sizes = shape.sizes
        last = length - shape.budget - sizes.answer - sizes.tail - sizes.facts[0]
        return max(shape.head, min(round(depth * length), last))

    def build(self, builder: PromptBuilder, length: int, depth: float | None, number: int) -> Trial:
        """Returns one trial of ``length`` tokens; see :meth:`RetrievalTask.build`."""
        self.check_length(builder, length)
        shape = self.shape(builder)
        position = None if depth is None else self.position(builder, length, depth)
        rng = self.trial_rng(builder, length, position, number)
        text = self._draw_of_shape(builder, rng, shape)
        tail = builder.tail(text.question, text.prefix)
        room = length - shape.head - len(tail) - shape.sizes.answer - shape.budget
        layout = BodyLayout(room, None if position is None else position - shape.head, number, rng)
        body = self.body(builder, [builder.fragment(fact) for fact in text.facts], layout)
        assert len(body) == room, f"{self}: a body of {len(body)} tokens for {room}"
        prompt = builder.head(self.instruction) + body + tail
        if shape.budget:
            return Trial(prompt, len(prompt), text.references or (text.answer.strip(),), shape.budget)
        return Trial(prompt + (builder.answer(text.question, text.prefix, text.answer) or []), len(prompt))

    def _draw_of_shape(self, builder: PromptBuilder, rng: random.Random, shape: PromptShape) -> TrialText:
        for _ in range(MAX_DRAWS):
            text = self.draw(builder, rng)
            sizes = self._sizes(builder, text, is_known=not shape.budget)
            same = sizes is not None and self._fixed(sizes) == self._fixed(shape.sizes)
            if sizes is not None and same and self._least(sizes) <= self._least(shape.sizes):
                return text
        raise ConfigError(f"{self}: this tokenizer makes no trials of equal sizes.", "Choose other tasks: --task NAME")

    def _find_shape(self, builder: PromptBuilder) -> PromptShape:
        """Returns the most frequent sizes of the sample trials, and of those the largest.

        Where the tokenizer joins the words before an answer with the answer, the answer has no tokens of its own:
        it is then generated and looked for.
        """
        samples = self.samples(builder)
        head = len(builder.head(self.instruction))
        if self.metric != CONTAINED:
            known = list(filter(None, (self._sizes(builder, text, is_known=True) for text in samples)))
            if known:
                return PromptShape(head, self._typical(known), 0)
        sizes = list(filter(None, (self._sizes(builder, text, is_known=False) for text in samples)))
        return PromptShape(head, self._typical(sizes), self.generated_budget(builder, samples))

    def _typical(self, sizes: Sequence[PartSizes]) -> PartSizes:
        fixed = Counter(map(self._fixed, sizes)).most_common(1)[0][0]
        return max((size for size in sizes if self._fixed(size) == fixed), key=self._least)

    def _fixed(self, sizes: PartSizes) -> tuple[int, ...]:
        """Returns the sizes that have to be the same in every trial."""
        return (sizes.facts[0], sizes.tail, sizes.answer) if self.has_depths else (sizes.answer,)

    def _least(self, sizes: PartSizes) -> int:
        """Returns the tokens that a trial takes with the shortest body."""
        return self.least_room(sizes.facts) + sizes.tail + sizes.answer

    def _sizes(self, builder: PromptBuilder, text: TrialText, is_known: bool) -> PartSizes | None:
        """Returns a trial's sizes; None if its answer is to be known token by token, and has no tokens of its own."""
        facts = tuple(len(builder.fragment(fact)) for fact in text.facts)
        tail = len(builder.tail(text.question, text.prefix))
        if not is_known:
            return PartSizes(facts, tail, 0)
        answer = builder.answer(text.question, text.prefix, text.answer)
        return None if answer is None else PartSizes(facts, tail, len(answer))
