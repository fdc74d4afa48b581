"""What a retrieval task is: parameters, a reference, a metric, and prompts of an exact length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import Self

from ropectl.errors import ConfigError
from ropectl.rope.method import Reference
from ropectl.specs import explain, format_spec
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.trial import Trial

RULER = Reference("RULER", "2404.06654")

#: Known answers are scored token by token; open ones by the share of references that the generated text contains.
EXACT, CONTAINED = "exact", "contained"


class RetrievalTask(BaseModel, ABC):
    """A way to ask whether a model uses what stands far back in its context.

    Subclasses declare their parameters as fields. Prompts are exactly as long as asked for, answer
    included, and depend on task, seed, place, trial and nothing else. A task is a value: ``str(task)`` is the
    spec that makes it again. Most tasks are a :class:`ropectl.tasks.composed.ComposedTask`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[Reference]
    #: What a good score shows, in one sentence.
    measures: ClassVar[str]
    #: ``exact`` or ``contained``; a tokenizer that gives an exact answer no tokens of its own makes it ``contained``.
    metric: ClassVar[str]
    #: Whether a single place decides, so that it is asked at several depths.
    has_depths: ClassVar[bool] = False

    @property
    def chance(self) -> float | None:
        """The score of guessing: among what stands in the prompt where there are several, else among all; None if not defined."""
        return None

    @abstractmethod
    def min_length(self, builder: PromptBuilder) -> int:
        """Returns the shortest prompt that can be built, answer included [tokens]."""

    @abstractmethod
    def position(self, builder: PromptBuilder, length: int, depth: float) -> int:
        """Returns where the asked fact goes in a prompt of ``length`` tokens, of a task with depths.

        Depth is measured over the whole prompt and then moved inside it, so that half of 2048 and a quarter of
        4096 tokens are one position and one trial.
        """

    @abstractmethod
    def build(self, builder: PromptBuilder, length: int, depth: float | None, number: int) -> Trial:
        """Returns one trial, prompt and answer (or what may be generated) together ``length`` tokens.

        Args:
            builder: Tokenizer, seed, text and chat template.
            length: Tokens in all.
            depth: Relative place of the asked fact, in [0, 1]; None for a task without depths.
            number: Which trial; another one hides and asks something else.

        Raises:
            ConfigError: If ``length`` is too short, naming the shortest possible; prompts are never cut.
        """

    def distinct_depths(self, builder: PromptBuilder, length: int, depths: Sequence[float]) -> list[float]:
        """Returns the depths that are different positions: in a short prompt several are moved to one."""
        positions: dict[int, float] = {}
        for depth in depths:
            positions.setdefault(self.position(builder, length, depth), depth)
        return list(positions.values())

    def check_length(self, builder: PromptBuilder, length: int, otherwise: str = "") -> None:
        """Checks that a prompt of ``length`` tokens can be built.

        Args:
            builder: Tokenizer, seed, text and chat template.
            length: Tokens in all.
            otherwise: What can be done instead of using other lengths.

        Raises:
            ConfigError: If it cannot, naming the shortest that can.
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
