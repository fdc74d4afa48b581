"""Ticks of values: enough of them, within the axis, at round numbers, on every range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropectl.report.figures.ticks import MOST, tick_texts, value_ticks

from .records_to_draw import drawings_of, perplexity_record


@pytest.mark.process
@given(st.floats(1e-3, 1e9), st.floats(1.02, 1e12))
def test_there_are_always_some(low: float, ratio: float) -> None:
    ticks = value_ticks(low, low * ratio)
    assert 3 <= len(ticks) <= MOST + 2 and ticks == sorted(ticks)
    assert low <= ticks[0] and ticks[-1] <= low * ratio
    texts = tick_texts(ticks)
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert len(text.partition("e")[0].replace(".", "").strip("0")) <= 6, "a round number"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (6.2, 18.6, ["7", "10", "15"]),  # 10 alone is round in ones, twos and fives
        (8.3, 10.4, ["8.5", "9", "9.5", "10"]),
        (8.0, 60.0, ["10", "20", "50"]),
        (0.7, 5e4, ["1", "10", "100", "1000", "10000"]),
    ],
)
def test_they_are_round(low: float, high: float, expected: list[str]) -> None:
    assert tick_texts(value_ticks(low, high)) == expected


@pytest.mark.process
def test_a_single_record_has_them_too() -> None:
    record = perplexity_record()
    for point, value in zip(record["points"], (10.3, 10.0, 9.3, 8.9), strict=False):
        point.update(perplexity=value, ci_low=0.65 * value, ci_high=1.8 * value)
    record["unscaled"] = []
    figure = next(one for one in drawings_of(record) if one.name == "perplexity").draw()
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    inside = [low <= tick <= high for tick in axes.get_yticks()]
    labels = [label.get_text() for label, seen in zip(axes.get_yticklabels(), inside, strict=True) if seen]
    assert labels == ["7", "10", "15"]
