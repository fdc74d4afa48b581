"""What a message quotes is one line, whatever it was given."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.printable import shorten, shown


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", ""),
        ("a" * 80, "a" * 80),
        ("a" * 81, "a" * 77 + "..."),
        ("two\nlines", "two lines"),
        ("two\r\nlines\u2028three", "two lines three"),
        ("a\n" * 1000, "a " * 38 + "a..."),
    ],
)
def test_shorten(text: str, short: str) -> None:
    assert shorten(text) == short


@pytest.mark.parametrize("width", [3, 10, 200])
def test_shorten_to_a_width(width: int) -> None:
    assert len(shorten("x\n" * 10**4, width)) == width


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (None, "None"),
        (-0.5, "-0.5"),
        ("a'b", '"a\'b"'),
        ([1, "x"], "[1, 'x']"),
        ({"factor": 4}, "{'factor': 4}"),
        ("\n" * 10**6, "'" + "\\n" * 38 + "..."),
        ([0.25] * 10**6, "[" + "0.25, " * 12 + "0.25..."),
        (10**5000, "int too large to print"),
    ],
    ids=["null", "number", "text", "list", "object", "long text", "long list", "long number"],
)
def test_shown(value: Any, quoted: str) -> None:
    assert shown(value) == quoted


def test_deep_nesting_is_shown_in_a_line() -> None:
    deep: list[Any] = []
    for _ in range(10**5):
        deep = [deep]
    assert len(shown(deep)) <= 80
