"""Needles: numbers are noted for names in a text, and one or several are asked for."""

from __future__ import annotations

import random

from pydantic import Field

from ropectl.tasks.haystack import HaystackTask, listing
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.prompt_parts import TrialText
from ropectl.tasks.task import CONTAINED, EXACT, RULER
from ropectl.tasks.words import draw_name, draw_number


class NumberTask(HaystackTask):
    """Numbers are noted for names, and asked for."""

    reference = RULER
    instruction = (
        "The text below is interrupted by notes, each of which gives a number to a name. Remember the numbers: "
        "you will be asked for some of them at the end.\n\n"
    )

    digits: int = Field(7, ge=4, le=12, description="digits of a number")

    def draw_numbers(self, builder: PromptBuilder, rng: random.Random, count: int) -> list[str]:
        """Returns ``count`` different numbers."""
        draw = builder.once(("number", self.digits), lambda: lambda rng: draw_number(rng, self.digits))
        return builder.draw_different(rng, draw, count)


class Needle(NumberTask):
    """A number is noted for a name somewhere in a text, and asked for at the end."""

    name = "needle"
    title = "Needle in your own text"
    measures = "whether one fact is found again in ordinary text"
    metric = EXACT
    has_depths = True

    @property
    def chance(self) -> float:
        """The chance of one number among all with so many digits."""
        return 1 / float(9 * 10 ** (self.digits - 1))

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns a name with its number."""
        (name,) = builder.draw_different(rng, draw_name, 1)
        (number,) = self.draw_numbers(builder, rng, 1)
        question = f"\n\nWhat is the number of {name}, as the text notes it?"
        return TrialText((note(name, number),), question, f" The number of {name} is", f" {number}")


class MultiKey(NumberTask):
    """Numbers are noted for several names, and that of one is asked for; the others distract."""

    name = "multi-key"
    title = "Needle among others like it"
    measures = "whether a fact is told apart from others of the same form"
    metric = EXACT
    has_depths = True

    distractors: int = Field(3, ge=1, le=100, description="other names with numbers in the text")

    @property
    def chance(self) -> float:
        """The chance of one number among those in the text."""
        return 1 / (self.distractors + 1)

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns names with their numbers, of which the first is asked for."""
        names = builder.draw_different(rng, draw_name, self.distractors + 1)
        numbers = self.draw_numbers(builder, rng, self.distractors + 1)
        question = f"\n\nWhat is the number of {names[0]}, as the text notes it?"
        return TrialText(tuple(map(note, names, numbers)), question, f" The number of {names[0]} is", f" {numbers[0]}")


class MultiQuery(NumberTask):
    """Numbers are noted for several names, and those of all are asked for at once."""

    name = "multi-query"
    title = "Several questions at once"
    measures = "whether several facts are found for one answer"
    metric = CONTAINED

    queries: int = Field(4, ge=2, le=50, description="names with a number each, all asked for")

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns names with their numbers, asked for in an order other than that of the text."""
        names = builder.draw_different(rng, draw_name, self.queries)
        numbers = self.draw_numbers(builder, rng, self.queries)
        facts = list(map(note, names, numbers))
        rng.shuffle(facts)
        asked = listing(names)
        question = f"\n\nWhat are the numbers of {asked}, as the text notes them?"
        return TrialText(
            tuple(facts), question, f" The numbers of {asked} are", f" {listing(numbers)}.", tuple(numbers)
        )


class MultiValue(NumberTask):
    """Several numbers are noted for one name at different places, and all of them are asked for."""

    name = "multi-value"
    title = "Several values of one key"
    measures = "whether all facts about one thing are gathered, not just one"
    metric = CONTAINED

    values: int = Field(4, ge=2, le=50, description="numbers of the one name")

    def draw(self, builder: PromptBuilder, rng: random.Random) -> TrialText:
        """Returns a name with its numbers."""
        (name,) = builder.draw_different(rng, draw_name, 1)
        numbers = self.draw_numbers(builder, rng, self.values)
        question = f"\n\nWhat are all {self.values} numbers of {name}, as the text notes them?"
        facts = tuple(note(name, number) for number in numbers)
        return TrialText(facts, question, f" The numbers of {name} are", f" {listing(numbers)}.", tuple(numbers))


def note(name: str, number: str) -> str:
    """Returns a fact: the note that gives a number to a name."""
    return f"\nNote: the number of {name} is {number}.\n"
