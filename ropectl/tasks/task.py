"""What a retrieval task is: parameters, texts, a reference, and how a prompt of an exact length is built."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import Self

from ropectl.data.trials import Trial
from ropectl.errors import ConfigError
from ropectl.rope.method import Reference
from ropectl.specs import explain, format_spec
from ropectl.tasks.kit import MAX_DRAWS, SAMPLE, PromptKit

RULER = Reference("RULER", "2404.06654")

#: Known answers are scored token by token; open ones by the share of references that the generated text contains.
EXACT, CONTAINED = "exact", "contained"

#: A model may take so many times the tokens of the bare answer, for words around it.
BUDGET_FACTOR = 2


@dataclass(frozen=True)
class Puzzle:
    """What one trial hides and asks.

    Attributes:
        facts: Texts that the body holds; of a task with depths the first is the one asked for.
        question: Behind the body; begins with a line break.
        prefix: The words that open the answer.
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
        trial: Index of the trial.
        rng: The trial's generator, behind the draws of its puzzle.
    """

    room: int
    spot: int | None
    trial: int
    rng: random.Random


class Shape(NamedTuple):
    """The fixed sizes of a task's prompts with one tokenizer [tokens].

    Attributes:
        head: Everything before the body.
        facts: Each fact.
        tail: Question and opening of the answer.
        answer: The known answer, or the most that may be generated.
    """

    head: int
    facts: tuple[int, ...]
    tail: int
    answer: int


class RetrievalTask(BaseModel, ABC):
    """A way to ask whether a model uses what stands far back in its context.

    Subclasses declare their parameters as fields and their texts, and say what a trial hides and asks
    (:meth:`draw`) and how the body of a prompt is made (:meth:`body`). Prompts are then exactly as long as
    asked for, answer included, and depend on task, seed, place, trial and nothing else. A task is a value:
    ``str(task)`` is the spec that makes it again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[Reference]
    #: What a good score shows, in one sentence.
    measures: ClassVar[str]
    #: Opens every prompt.
    instruction: ClassVar[str]
    #: ``exact`` or ``contained``.
    metric: ClassVar[str]
    #: Whether a single place decides, so that it is asked at several depths.
    has_depths: ClassVar[bool] = False

    @property
    def chance(self) -> float | None:
        """The score of guessing: among what is planted where there are several, else among all; None if not defined."""
        return None

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
        return shape.head + self.least_room(shape.facts) + shape.tail + shape.answer

    def position(self, kit: PromptKit, length: int, depth: float) -> int:
        """Returns where the asked fact goes in a prompt of ``length`` tokens.

        Depth is measured over the whole prompt and then moved inside the body, so that half of 2048 and a
        quarter of 4096 tokens are one position and one trial.
        """
        shape = self._shape(kit)
        return max(shape.head, min(round(depth * length), length - shape.facts[0] - shape.tail - shape.answer))

    def distinct_depths(self, kit: PromptKit, length: int, depths: Sequence[float]) -> list[float]:
        """Returns the depths that are different positions: in a short prompt several are moved to one."""
        positions: dict[int, float] = {}
        for depth in depths:
            positions.setdefault(self.position(kit, length, depth), depth)
        return list(positions.values())

    def build(self, kit: PromptKit, length: int, depth: float | None, trial: int) -> Trial:
        """Returns one trial, prompt and answer (or what may be generated) together ``length`` tokens.

        Args:
            kit: Tokenizer, seed, text and frame.
            length: Tokens in all.
            depth: Relative place of the asked fact, in [0, 1]; None for a task without depths.
            trial: Index of the trial; another one hides and asks something else.

        Raises:
            ConfigError: If ``length`` is too short, naming the shortest possible; prompts are never cut.
        """
        self.check_length(kit, length)
        shape = self._shape(kit)
        position = None if depth is None else self.position(kit, length, depth)
        rng = kit.rng(self, length if position is None else f"at {position}", trial)
        puzzle = self._draw_of_shape(kit, rng, shape)
        head, tail = kit.head(self.instruction), kit.tail(puzzle.question, puzzle.prefix)
        answer = (kit.answer(puzzle.question, puzzle.prefix, puzzle.answer) or []) if self.metric == EXACT else []
        room = length - shape.head - shape.tail - shape.answer
        spot = None if position is None else position - shape.head
        body = self.body(kit, [kit.fragment(fact) for fact in puzzle.facts], Layout(room, spot, trial, rng))
        assert len(body) == room, f"{self}: a body of {len(body)} tokens for {room}"
        prompt = head + body + tail
        budget = shape.answer if self.metric == CONTAINED else 0
        return Trial(prompt + answer, len(prompt), puzzle.references, budget)

    def check_length(self, kit: PromptKit, length: int) -> None:
        """Checks that a prompt of ``length`` tokens can be built.

        Raises:
            ConfigError: If it cannot, naming the shortest that can.
        """
        shortest = self.min_length(kit)
        if length < shortest:
            raise ConfigError(
                f"length = {length} tokens is too short for the task {self}: its shortest prompt takes {shortest} tokens "
                "with this tokenizer, answer included.",
                f"Use lengths of at least {shortest}, or other tasks: --task NAME",
            )

    def _draw_of_shape(self, kit: PromptKit, rng: random.Random, shape: Shape) -> Puzzle:
        """Draws until every part has its fixed size, so that lengths and positions are exact."""
        for _ in range(MAX_DRAWS):
            puzzle = self.draw(kit, rng)
            if self._sizes(kit, puzzle) == self._sizes_of(shape):
                return puzzle
        raise ConfigError(f"{self}: this tokenizer makes no trials of equal sizes.")

    def _shape(self, kit: PromptKit) -> Shape:
        return kit.once(("shape", self), lambda: self._find_shape(kit))

    def _find_shape(self, kit: PromptKit) -> Shape:
        """The most frequent sizes among a fixed sample of puzzles."""
        rng = random.Random("ropectl-shape")
        puzzles = [self.draw(kit, rng) for _ in range(SAMPLE)]
        sizes = [self._sizes(kit, puzzle) for puzzle in puzzles]
        known = Counter(size for size in sizes if size is not None)
        if not known:
            raise ConfigError(
                f"{self}: this tokenizer joins the words before the answer with the answer, which then has no tokens of its own."
            )
        typical = known.most_common(1)[0][0]
        answer = typical.answer
        if self.metric == CONTAINED:
            answer = BUDGET_FACTOR * len(kit.fragment(puzzles[sizes.index(typical)].answer))
        return Shape(len(kit.head(self.instruction)), typical.facts, typical.tail, answer)

    def _sizes(self, kit: PromptKit, puzzle: Puzzle) -> _Sizes | None:
        facts = tuple(len(kit.fragment(fact)) for fact in puzzle.facts)
        tail = len(kit.tail(puzzle.question, puzzle.prefix))
        if self.metric == CONTAINED:
            return _Sizes(facts, tail, 0)
        answer = kit.answer(puzzle.question, puzzle.prefix, puzzle.answer)
        return None if answer is None else _Sizes(facts, tail, len(answer))

    def _sizes_of(self, shape: Shape) -> _Sizes:
        return _Sizes(shape.facts, shape.tail, 0 if self.metric == CONTAINED else shape.answer)

    @classmethod
    def create(cls, parameters: dict[str, Any]) -> Self:
        """Returns the task with these parameters, strings welcome.

        Raises:
            ConfigError: Naming the parameter, its value and what is allowed.
        """
        try:
            return cls(**parameters)
        except ValidationError as error:
            example = f"Type for example: --task {cls.name}"
            raise ConfigError(*explain(cls, cls.name, error, parameters, lambda name: f"{example}:{name}=2")) from None

    def __str__(self) -> str:
        return format_spec(self.name, self.model_dump(exclude_defaults=True))


class _Sizes(NamedTuple):
    facts: tuple[int, ...]
    tail: int
    answer: int
