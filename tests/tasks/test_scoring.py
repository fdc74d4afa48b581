"""RULER's rule on strings made by hand."""

from __future__ import annotations

import pytest

from ropectl.tasks.scoring import contained_share


@pytest.mark.parametrize(
    ("text", "references", "expected"),
    [
        ("1234567", ["1234567"], 1.0),
        ("", ["1234567"], 0.0),
        ("The numbers are 11, 22 and 44.", ["11", "22", "33", "44"], 0.75),
        ("44 33 22 11", ["11", "22", "33", "44"], 1.0),
        ("LEMON and Cedar", ["lemon", "cedar"], 1.0),
        ("abcde", ["ABCDE", "FGHIJ"], 0.5),
        ("12345678", ["1234567"], 1.0),
        ("123 4567", ["1234567"], 0.0),
        ("lemon lemon lemon", ["lemon", "cedar", "pony"], 1 / 3),
    ],
)
def test_share_of_references(text: str, references: list[str], expected: float) -> None:
    assert contained_share(text, references) == expected
