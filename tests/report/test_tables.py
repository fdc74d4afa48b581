"""Rows of a comparison by name, with marks and missing numbers, at 80 columns."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.report.graphics import curve, curve_scale
from ropectl.report.tables.words import bits_text, perplexity_text, row_names, short_names, worst_head
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


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.floats(1.0, 1e6), st.floats(8.0, 9.0)), min_size=4, max_size=4),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_the_legend_of_curves_quotes_numbers_of_the_table(values: list[list[float | None]], same_tokens: bool) -> None:
    """With the block that the table draws for them, whatever the spread: in a narrow range, in a wide one, with failures."""
    content = records.comparison(["none", *(f"pi:factor={i + 2}" for i in range(len(values) - 1))])
    for row, numbers in zip(content["rows"], values, strict=True):
        row["perplexity"] = [records.point(n, v) for n, v in zip(records.LENGTHS, numbers, strict=True)]
        for each in row["perplexity"]:
            each["bits_per_byte"] = each["perplexity"] and each["perplexity"] / 7
    text = render({**content, "same_tokens": same_tokens, "pick": None}, width=200)
    legend = re.search(r"log scale from (.) ([\d.e+]+) to (.) ([\d.e+]+)(?P<more> or more)?$", text, re.M)
    known = [value for numbers in values for value in numbers if value is not None]
    assert (legend is None) == (not known)
    if legend is None:
        return
    form = perplexity_text if same_tokens else bits_text
    scale, drawn = curve_scale(known), {form(value if same_tokens else value / 7): value for value in known}
    assert scale is not None and {legend[2], legend[4]} <= set(drawn)
    assert legend[2] == form(min(known) if same_tokens else min(known) / 7)
    for block, number in ((legend[1], legend[2]), (legend[3], legend[4])):
        assert f" {number}" in text.partition("log scale")[0], "it stands in the table"
        assert any(
            curve([value], scale) == block for value in known if form(value if same_tokens else value / 7) == number
        )
    highest = [value for value in known if curve([value], scale) == "█"]
    assert bool(legend["more"]) == (max(known) > scale[1])
    assert legend[4] == form((min(highest) if legend["more"] else max(known)) / (1 if same_tokens else 7))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([8.46, 9.1, 30.0, 53.9], "log scale from ▁ 8.46 to █ 53.90"),
        ([8.0, 8.1, 8.2, 8.3], "log scale from ▁ 8.00 to ▁ 8.30"),
        ([8.0, 9.0, 10.0, 12.0], "log scale from ▁ 8.00 to ▅ 12.00"),
        ([8.0, 130.0, 500.0, 9000.0], "log scale from ▁ 8.00 to █ 130.0 or more"),
    ],
)
def test_the_legend_of_curves(values: list[float], expected: str) -> None:
    content = records.comparison(["none"])
    content["rows"][0]["perplexity"] = [records.point(n, v) for n, v in zip(records.LENGTHS, values, strict=True)]
    assert f"{expected}\n" in render({**content, "pick": None}, width=200) + "\n"
