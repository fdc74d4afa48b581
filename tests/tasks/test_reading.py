"""What counts as the answer in a generated text: the first complete number, in whatever words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.tasks.trial import first_number

KEY = "12345"


@pytest.mark.parametrize(
    "text",
    [
        "12345",
        " 12345",
        "\n\n12345\n",
        "12345.",
        "12345, I believe",
        "12345\n\nWhat is the pass key? 99999",
        "**12345**",
        "`12345`",
        '"12345"',
        "(12345)",
        "Sure! It is 12345",
        "The pass key is 12345. Remember it. 12345 is the pass key.",
        "<think>a number</think>12345",
        "12345-67",
        "12345,678",
        "12345.0",
        "12345th",
        "\u5bc6\u94a5\u662f12345\u3002",
    ],
)
def test_right_in_other_words(text: str) -> None:
    assert first_number(text) == KEY


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I do not know.",
        "123456",
        "1234",
        "012345",
        "912345",
        "12,345",
        "12 345",
        "1 2 3 4 5",
        "It is 1: 12345",
        "99999, or 12345",
        "12345\u0666",
        "one two three four five",
    ],
)
def test_another_number_or_none(text: str) -> None:
    assert first_number(text) != KEY


@pytest.mark.parametrize(
    ("text", "number"), [("It is 12345", None), ("It is 12345.", KEY), ("12345 67", KEY), ("It is", None), ("12", None)]
)
def test_a_number_at_the_end_of_a_cut_text_might_go_on(text: str, number: str | None) -> None:
    assert first_number(text, is_cut=True) == number


KEYS = st.integers(10_000, 99_999).map(str)
WORDS = st.text(st.characters(exclude_categories=["Nd", "Cs"]))


@given(KEYS, WORDS, WORDS, st.text())
def test_any_words_around_the_key(key: str, before: str, after: str, rest: str) -> None:
    """Whatever follows, if it does not begin with a digit, and digits after that."""
    assert first_number(before + key + after) == key
    if after:
        assert (
            first_number(before + key + after + rest) == first_number(before + key + after + rest, is_cut=True) == key
        )


@given(KEYS, WORDS, st.from_regex(r"\A[0-9]+\Z"), WORDS)
def test_any_other_number_first(key: str, before: str, other: str, between: str) -> None:
    """A number that is another one is wrong, also if it holds the key or the key follows."""
    said = before + other + between + key
    number = other if between else other + key
    assert first_number(said) == number and (first_number(said) == key) == (number == key)
