"""Tasks that draw a puzzle and lay it out: instruction, body, question, and the words that open the answer.

A prompt is a splice of token fragments::

    head (BOS, instruction) | body | tail (question, opening of the answer) | answer

The body takes what the other parts leave, to the token. Of a task with depths they have fixed sizes, so that a
place is the same token in every trial: puzzles are drawn until theirs are the most frequent ones.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ropectl.data.trials import Trial
from ropectl.errors import ConfigError
from ropectl.tasks.kit import MAX_DRAWS, SAMPLE, PromptKit
from ropectl.tasks.task import CONTAINED, RetrievalTask

#: A model may take so many times the tokens of the bare answer: a numbered list takes more than words with commas.
BUDGET_FACTOR = 3


@dataclass(frozen=True)
class Puzzle:
    """What one trial hides and asks.

    Attributes:
        facts: Texts that the body holds; of a task with depths the first is the one asked for.
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
class Layout:
    """Where the body of one trial goes.

    Attributes:
        room: How long it is, exactly [tokens].
        spot: Index in the body at which the asked fact begins; None for a task without depths.
        number: Which trial.
        rng: The trial's generator, behind the draws of its puzzle.
    """

    room: int
    spot: int | None
    number: int
    rng: random.Random


class Sizes(NamedTuple):
    """What the parts of a puzzle take [tokens]: each fact, the tail, and the known answer (0 where it is generated)."""

    facts: tuple[int, ...]
    tail: int
    answer: int


class Shape(NamedTuple):
    """The sizes of a task's prompts with one tokenizer [tokens].

    Attributes:
        head: Everything before the body.
        sizes: Those of a typical puzzle; none takes more, and of a task with depths the asked fact, the tail and
            the answer take the same.
        budget: The most that may be generated; 0 where the answer is known token by token.
    """

    head: int
    sizes: Sizes
    budget: int


class PuzzleTask(RetrievalTask):
    """A task that says what a trial hides and asks (:meth:`draw`) and how a body is made of it (:meth:`body`)."""

    #: Opens every prompt.
    instruction: ClassVar[str]

    @abstractmethod
    def draw(self, kit: PromptKit, rng: random.Random) -> Puzzle:
        """Returns what a trial hides and asks, drawn from ``rng`` alone."""

    @abstractmethod
    def body(self, kit: PromptKit, facts: Sequence[list[int]], layout: Layout) -> list[int]:
        """Returns the body, ``layout.room`` tokens that hold the facts."""

    def least_room(self, facts: Sequence[int]) -> int:
        """Returns the shortest body that holds facts of these lengths [tokens]."""
        return sum(facts)

    def min_length(self, kit: PromptKit) -> int:
        """Returns the shortest prompt that can be built, answer included [tokens]."""
        shape = self._shape(kit)
        return shape.head + self._least(shape.sizes) + shape.budget

    def position(self, kit: PromptKit, length: int, depth: float) -> int:
        """Returns where the asked fact goes: at its depth of the whole prompt, moved inside the body."""
        shape = self._shape(kit)
        sizes = shape.sizes
        last = length - shape.budget - sizes.answer - sizes.tail - sizes.facts[0]
        return max(shape.head, min(round(depth * length), last))

    def build(self, kit: PromptKit, length: int, depth: float | None, number: int) -> Trial:
        """Returns one trial of ``length`` tokens; see :meth:`RetrievalTask.build`."""
        self.check_length(kit, length)
        shape = self._shape(kit)
        position = None if depth is None else self.position(kit, length, depth)
        rng = kit.rng(self, length if position is None else f"at {position}", number)
        puzzle = self._draw_of_shape(kit, rng, shape)
        tail = kit.tail(puzzle.question, puzzle.prefix)
        room = length - shape.head - len(tail) - shape.sizes.answer - shape.budget
        layout = Layout(room, None if position is None else position - shape.head, number, rng)
        body = self.body(kit, [kit.fragment(fact) for fact in puzzle.facts], layout)
        assert len(body) == room, f"{self}: a body of {len(body)} tokens for {room}"
        prompt = kit.head(self.instruction) + body + tail
        if shape.budget:
            return Trial(prompt, len(prompt), puzzle.references or (puzzle.answer.strip(),), shape.budget)
        return Trial(prompt + (kit.answer(puzzle.question, puzzle.prefix, puzzle.answer) or []), len(prompt))

    def _draw_of_shape(self, kit: PromptKit, rng: random.Random, shape: Shape) -> Puzzle:
        for _ in range(MAX_DRAWS):
            puzzle = self.draw(kit, rng)
            sizes = self._sizes(kit, puzzle, is_known=not shape.budget)
            same = sizes is not None and self._fixed(sizes) == self._fixed(shape.sizes)
            if sizes is not None and same and self._least(sizes) <= self._least(shape.sizes):
                return puzzle
        raise ConfigError(f"{self}: this tokenizer makes no trials of equal sizes.", "Choose other tasks: --task NAME")

    def _shape(self, kit: PromptKit) -> Shape:
        return kit.once(("shape", self), lambda: self._find_shape(kit))

    def _find_shape(self, kit: PromptKit) -> Shape:
        """The sizes of a fixed sample of puzzles: the most frequent ones, and of them the largest.

        Where the tokenizer joins the words before an answer with the answer, the answer has no tokens of its own:
        it is then generated and looked for.
        """
        rng = random.Random("ropectl-shape")
        puzzles = [self.draw(kit, rng) for _ in range(SAMPLE)]
        head = len(kit.head(self.instruction))
        if self.metric != CONTAINED:
            known = list(filter(None, (self._sizes(kit, puzzle, is_known=True) for puzzle in puzzles)))
            if known:
                return Shape(head, self._typical(known), 0)
        sizes = list(filter(None, (self._sizes(kit, puzzle, is_known=False) for puzzle in puzzles)))
        written = max(len(kit.fragment(puzzle.answer)) for puzzle in puzzles)
        return Shape(head, self._typical(sizes), BUDGET_FACTOR * written)

    def _typical(self, sizes: Sequence[Sizes]) -> Sizes:
        fixed = Counter(map(self._fixed, sizes)).most_common(1)[0][0]
        return max((size for size in sizes if self._fixed(size) == fixed), key=self._least)

    def _fixed(self, sizes: Sizes) -> tuple[int, ...]:
        """What has to be the same in every trial."""
        return (sizes.facts[0], sizes.tail, sizes.answer) if self.has_depths else (sizes.answer,)

    def _least(self, sizes: Sizes) -> int:
        """Tokens that a puzzle takes with the shortest body."""
        return self.least_room(sizes.facts) + sizes.tail + sizes.answer

    def _sizes(self, kit: PromptKit, puzzle: Puzzle, is_known: bool) -> Sizes | None:
        """Sizes of a puzzle; None if its answer is to be known token by token, and has no tokens of its own."""
        facts = tuple(len(kit.fragment(fact)) for fact in puzzle.facts)
        tail = len(kit.tail(puzzle.question, puzzle.prefix))
        if not is_known:
            return Sizes(facts, tail, 0)
        answer = kit.answer(puzzle.question, puzzle.prefix, puzzle.answer)
        return None if answer is None else Sizes(facts, tail, len(answer))
