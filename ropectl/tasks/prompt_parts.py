"""The parts of a prompt: the words of a trial, the place of its body, and sizes in tokens."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple


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
