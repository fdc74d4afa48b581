"""Rows of a comparison by name, with marks and missing numbers, at 80 columns."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.report.tables.words import perplexity_text, row_names, short_names, worst_head
from ropectl.report.views.compare_methods import comparison_parts
from ropectl.report.writers.terminal import terminal_lines
from ropectl.rope.method import short_spec

from . import records


def render(json: dict[str, Any], width: int = 80) -> str:
    return "\n".join(line.plain for line in terminal_lines(comparison_parts(records.made(json)), width))


def comparison(lengths: list[int], methods: list[str]) -> dict[str, Any]:
    """Numbers of all sizes; no row models any length, few prompts, few documents."""
    json = records.comparison(methods, lengths, trained=4096)
    for i, row in enumerate(json["rows"]):
        values = [3.14159 * (i + 1) * (j + 1) ** 4 for j in range(len(lengths))]
        row["perplexity"] = [records.point(n, v, n > 8192) for n, v in zip(lengths, values, strict=True)]
        row["tail"] = [records.point(4096, 3.0, documents=3)]
        row["reach"] = {"computes": 8192, "models": 0, "uses": None}
    return json | {"pick": None}


def test_trained_rows_are_next_to_their_methods() -> None:
    """A row of its own for the trained model, under the name of its method."""
    pick = records.comparison()["pick"]
    methods = [name for name in ("none", "dynamic-yarn", "yarn:factor=8,beta_fast=16") for _ in range(2)]
    content = comparison([1024 * 2**i for i in range(6)], [*methods, "yarn:factor=4"])
    for row in content["rows"][1::2]:
        row["training"] = {"id": "0123456789abcdef"}
    assert row_names(records.made(content).rows) == [
        "none", "none, tuned", "dynamic-yarn", "dynamic-yarn, tuned",
        "yarn:factor=8,beta_fast=16", "yarn:factor=8,beta_fast=16, tuned", "yarn:factor=4",
    ]  # fmt: skip
    reasons = ["uses 8192 tokens"]
    content["pick"] = {**pick, "method": "dynamic-yarn", "training": "0123456789abcdef", "reasons": reasons}
    content["rows"][1]["errors"] = ["training: diverged"]
    text = render(content)
    assert "Pick: dynamic-yarn, tuned (uses 8192 tokens)." in text and "none, tuned failed: training: diverged" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_trained_length_and_what_lies_beyond_are_marked() -> None:
    text = render(comparison([4096, 16_384], ["none"]))
    assert "4k (L)" in text and "50.27*" in text and "past the length" in text
    assert "few documents (3" in text


def test_failures_and_missing_numbers_are_shown() -> None:
    content = comparison([4096, 8192], ["none", "pi:factor=4"])
    lost = {"perplexity": [], "passkey": [], "short_delta": None, "errors": ["prefix 8192: out of memory"]}
    content["rows"][1] |= lost
    text = render(content)
    assert "n/a" in text and "pi failed: prefix 8192: out of memory" in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "n/a"), (1.0, "1.00"), (99.994, "99.99"), (123.456, "123.5"), (12345.6, "12346"), (1.5e7, "1.50e+07")],
)
def test_perplexity_text(value: float | None, expected: str) -> None:
    assert perplexity_text(value) == expected


def test_names_are_short_where_that_is_clear() -> None:
    assert short_names(["none", "yarn:factor=4"]) == {"none": "none", "yarn:factor=4": "yarn"}
    alike = ["yarn:factor=4", "yarn:factor=8"]
    assert short_names(alike) == dict(zip(alike, alike, strict=True))
    assert short_spec("longrope:factor=4,long_factor=1:2:3:4:5:6:7:8") == "longrope:factor=4,long_factor=[8 values]"


def test_the_worst_change_is_that_of_measured_lengths() -> None:
    """The heading names L only where anything was scored at it."""
    assert worst_head([256, 512, 1024], 512) == worst_head([], 512) == worst_head([], None) == "worst up to L"
    assert worst_head([256, 1024], 8192) == "worst up to 1k"
    content = comparison([4096, 8192], ["none", "pi:factor=4"])
    assert "worst up to L" in render(content)
    for row in content["rows"]:
        row["perplexity"] = [records.point(512, 9.0), records.point(4096, None)]
    content["lengths"] = [512, 4096]
    assert "worst up to 512" in render(content) and "worst up to L" not in render(content)
