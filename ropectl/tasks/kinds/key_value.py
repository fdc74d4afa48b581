"""Looks up a value in a long list of keys."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from pydantic import Field

from ropectl.rope.method import Reference
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import BodyLayout, TrialText
from ropectl.tasks.task import EXACT, RetrievalTask
from ropectl.tasks.words import draw_number


class KeyValue(RetrievalTask):
    """The whole context is a list of keys and values that mean nothing, and one value is asked for."""

    name = "key-value"
    title = "Key-value lookup"
    reference = Reference("Lost in the Middle", "2307.03172")
    measures = "whether an exact string is found among many that look alike"
    instruction = "Below is a list of keys, each with its value. You will be asked for one value.\n"
    metric = EXACT
    has_depths = True

    form: Literal["uuid", "number"] = Field("uuid", description="keys and values: uuid or number (of 8 digits)")

    @property
    def chance(self) -> float:
        """The chance of one value among all; how many are in the list depends on its length."""
        return 2.0**-122 if self.form == "uuid" else 1 / 9e7

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns the line that is asked for."""
        key, value = builder.draw_different(rng, _FORMS[self.form], 2)
        question = f'\n\nWhat is the value of the key "{key}" in the list?'
        return TrialText((_line(key, value),), question, f' "{key}":', f' "{value}"')

    def body(self, builder: PromptBuilder, facts: Sequence[list[int]], layout: BodyLayout) -> list[int]:
        """Returns lines of a stream that is the same for every length and depth, the asked one at the end of a line."""
        lines = self._lines(builder, layout.number)
        assert layout.fact_start is not None
        result: list[int] = []
        line = next(lines)
        while len(result) + len(line) <= layout.fact_start:
            result += line
            line = next(lines)
        result += facts[0]
        while len(result) < layout.room:
            result += line
            line = next(lines)
        # The last line may be cut, but never the asked one, which fits in its place.
        return result[: layout.room]

    def _lines(self, builder: PromptBuilder, trial: int) -> Iterator[list[int]]:
        rng, draw = builder.rng(self, trial, "lines"), _FORMS[self.form]
        while True:
            yield builder.fragment(_line(draw(rng), draw(rng)))


def _line(key: str, value: str) -> str:
    return f'\n"{key}": "{value}",'


_FORMS: dict[str, Callable[[random.Random], str]] = {
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "number": lambda rng: draw_number(rng, 8),
}
