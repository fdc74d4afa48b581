"""The parts of a prompt: the texts of a trial, the layout of its body, and sizes in tokens."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class TrialText:
    """The texts of one trial: what it hides and what it asks.

    Attributes:
        facts: Texts in the body; in a task with depths the first is the one asked for.
        question: The text after the body; begins with a line break.
        prefix: The words that open the answer; begin with a space.
        answer: The answer as it follows them; begins with a space.
        references: Texts that a generated answer must contain; empty if the answer is known token by token.
    """

    facts: tuple[str, ...]
    question: str
    prefix: str
    answer: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class BodyLayout:
    """The length and layout of the body of one trial.

    Attributes:
        room: Its exact length [tokens].
        fact_start: Index in the body at which the asked fact begins; None for a task without depths.
        number: Index of the trial.
        rng: The trial's generator, from which its texts were already drawn.
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
        sizes: The sizes of a typical trial; none takes more, and in a task with depths the asked fact, the tail and
            the answer always take the same.
        budget: The most that may be generated; 0 if the answer is known token by token.
    """

    head: int
    sizes: PartSizes
    budget: int
