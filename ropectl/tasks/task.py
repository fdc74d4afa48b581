"""The base of retrieval tasks: parameters, a reference, a metric, and prompts of an exact length.

A prompt is made of token fragments::

    head (BOS, instruction) | body | tail (question, opening of the answer) | answer

The body fills what the other parts leave, to the token. In a task with depths those have fixed sizes, so that a
position is the same token in every trial: texts are drawn until they have the most frequent sizes.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import Self

from ropectl.errors import ConfigError
from ropectl.faults import explain
from ropectl.rope.method import Reference
from ropectl.specs import format_spec
from ropectl.tasks.prompt_builder import MAX_DRAWS, SAMPLE, PromptBuilder
from ropectl.tasks.prompt_parts import BodyLayout, PartSizes, PromptShape, TrialText
from ropectl.tasks.trial import Trial

RULER = Reference("RULER", "2404.06654")

#: Known answers are scored token by token; open ones by the share of references that the generated text contains.
EXACT, CONTAINED = "exact", "contained"

#: A model may take so many times the tokens of the bare answer: a numbered list takes more than words with commas.
BUDGET_FACTOR = 3


class RetrievalTask(BaseModel, ABC):
    """A way to ask whether a model uses what is far back in its context.

    Subclasses declare their parameters as fields, and say what a trial hides and asks (:meth:`draw`) and how a body is
    made of it (:meth:`body`). Prompts are exactly as long as asked for, answer included, and depend only on task,
    seed, position and trial. A task is a value: ``str(task)`` is its spec.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[Reference]
    #: Opens every prompt.
    instruction: ClassVar[str]
    #: The meaning of a good score, in one sentence.
    measures: ClassVar[str]
    #: ``exact`` or ``contained``; a tokenizer that gives an exact answer no tokens of its own makes it ``contained``.
    metric: ClassVar[str]
    #: Whether a single place decides, so that it is asked at several depths.
    has_depths: ClassVar[bool] = False

    @property
    def chance(self) -> float | None:
        """The score of guessing: among the answers in the prompt if there are several, else among all; None if not defined."""
        return None

    @abstractmethod
    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns what a trial hides and asks, drawn from ``rng`` alone."""

    @abstractmethod
    def body(self, builder: PromptBuilder, facts: Sequence[list[int]], layout: BodyLayout) -> list[int]:
        """Returns the body, ``layout.room`` tokens that hold the facts."""

    def least_room(self, facts: Sequence[int]) -> int:
        """Returns the shortest body that holds facts of these lengths, wherever the asked one is [tokens]."""
        others = facts[1:] if self.has_depths else ()
        # Room for one fact more: then a side of the asked fact always has room for the next one.
        return sum(facts) + max(others, default=0)

    def samples(self, builder: PromptBuilder) -> list[TrialText]:
        """Returns the texts of some trials, always the same ones: their sizes decide those of all prompts."""
        rng = random.Random("ropectl-shape")
        return [self.draw(builder, rng) for _ in range(SAMPLE)]

    def generated_budget(self, builder: PromptBuilder, samples: Sequence[TrialText]) -> int:
        """Returns the most tokens of an answer that is generated."""
        return BUDGET_FACTOR * max(len(builder.fragment(text.answer)) for text in samples)

    def trial_rng(self, builder: PromptBuilder, length: int, position: int | None, number: int) -> random.Random:
        """Returns the generator of one trial; if the asked fact has a position, prompts of all lengths share it."""
        return builder.rng(self, length if position is None else f"at {position}", number)

    def shape(self, builder: PromptBuilder) -> PromptShape:
        """Returns the sizes of the task's prompts."""
        return builder.once(("shape", self), lambda: self._find_shape(builder))

    def min_length(self, builder: PromptBuilder) -> int:
        """Returns the shortest prompt that can be built, answer included [tokens]."""
        shape = self.shape(builder)
        return shape.head + self._least(shape.sizes) + shape.budget

    def position(self, builder: PromptBuilder, length: int, depth: float) -> int:
        """Returns where the asked fact goes in a prompt of ``length`` tokens, of a task with depths.

        Depth is measured over the whole prompt and then moved inside the body, so that half of 2048 and a quarter of
        4096 tokens are one position and one trial.
        """
        shape = self.shape(builder)
        sizes = shape.sizes
        last = length - shape.budget - sizes.answer - sizes.tail - sizes.facts[0]
        return max(shape.head, min(round(depth * length), last))

    def build(self, builder: PromptBuilder, length: int, depth: float | None, number: int) -> Trial:
        """Returns one trial, prompt and answer (or what may be generated) together ``length`` tokens.

        Args:
            builder: Tokenizer, seed, text and chat template.
            length: Tokens in all.
            depth: Relative place of the asked fact, in [0, 1]; None for a task without depths.
            number: Index of the trial; another one hides and asks something else.

        Raises:
            ConfigError: If ``length`` is too short; it names the shortest possible, for prompts are never cut.
        """
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

    def distinct_depths(self, builder: PromptBuilder, length: int, depths: Sequence[float]) -> list[float]:
        """Returns the depths with different positions: in a short prompt several may be moved to one."""
        positions: dict[int, float] = {}
        for depth in depths:
            positions.setdefault(self.position(builder, length, depth), depth)
        return list(positions.values())

    def check_length(self, builder: PromptBuilder, length: int, otherwise: str = "") -> None:
        """Checks that a prompt of ``length`` tokens can be built.

        Args:
            builder: Tokenizer, seed, text and chat template.
            length: Tokens in all.
            otherwise: An alternative to other lengths, for the hint.

        Raises:
            ConfigError: If it cannot; it names the shortest that can.
        """
        shortest = self.min_length(builder)
        if length < shortest:
            raise ConfigError(
                f"length = {length} tokens is too short for the task {self}: its shortest prompt takes {shortest} tokens "
                "with this tokenizer, answer included.",
                f"Use lengths of at least {shortest}{otherwise}.",
            )

    @classmethod
    def create(cls, parameters: dict[str, Any]) -> Self:
        """Returns the task with these parameters, which may be strings.

        Raises:
            ConfigError: If one is wrong; it names the parameter, its value and what is allowed.
        """
        try:
            return cls(**parameters)
        except ValidationError as error:
            example = f"Type for example: --task {cls.name}"
            raise ConfigError(*explain(cls, cls.name, error, parameters, lambda name: f"{example}:{name}=2")) from None

    def __str__(self) -> str:
        return format_spec(self.name, self.model_dump(exclude_defaults=True))

    def _draw_of_shape(self, builder: PromptBuilder, rng: random.Random, shape: PromptShape) -> TrialText:
        for _ in range(MAX_DRAWS):
            text = self.draw(builder, rng)
            sizes = self._sizes(builder, text, is_known=not shape.budget)
            same = sizes is not None and self._fixed(sizes) == self._fixed(shape.sizes)
            if sizes is not None and same and self._least(sizes) <= self._least(shape.sizes):
                return text
        raise ConfigError(f"{self}: this tokenizer makes no trials of equal sizes.", "Choose other tasks: --task NAME")

    def _find_shape(self, builder: PromptBuilder) -> PromptShape:
        """Returns the most frequent sizes of the sample trials, and the largest of those.

        If the tokenizer joins the answer with the words before it, the answer has no tokens of its own: it is then
        generated and looked for.
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
        """Returns the sizes that must be the same in every trial."""
        return (sizes.facts[0], sizes.tail, sizes.answer) if self.has_depths else (sizes.answer,)

    def _least(self, sizes: PartSizes) -> int:
        """Returns the tokens that a trial takes with the shortest body."""
        return self.least_room(sizes.facts) + sizes.tail + sizes.answer

    def _sizes(self, builder: PromptBuilder, text: TrialText, is_known: bool) -> PartSizes | None:
        """Returns a trial's sizes; None if its known answer has no tokens of its own."""
        facts = tuple(len(builder.fragment(fact)) for fact in text.facts)
        tail = len(builder.tail(text.question, text.prefix))
        if not is_known:
            return PartSizes(facts, tail, 0)
        answer = builder.answer(text.question, text.prefix, text.answer)
        return None if answer is None else PartSizes(facts, tail, len(answer))
