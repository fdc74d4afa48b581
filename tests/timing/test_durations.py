"""Durations as they are typed and shown."""

from __future__ import annotations

import pytest

from ropectl.errors import ConfigError
from ropectl.timing.durations import duration, duration_range, parse_duration
from ropectl.timing.load import Load
from ropectl.timing.speed import Span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), (" 1.5H ", 5400), ("1d", 86_400), ("0.5s", 0.5)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text, "--budget") == seconds


@pytest.mark.parametrize("text", ["10", "m", "", "0s", "-1m", "10 minutes", "1h-3m", "1e9h", "400d", "10m5", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a duration") as refused:
        parse_duration(text, "--budget")
    assert "--budget 10m" in refused.value.hint


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0.4 s"), (59.4, "59 s"), (60, "1 min"), (3599, "1 h 00 min"), (3540, "59 min"), (360_300, "100 h 05 min")],
)
def test_duration(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (480, 720, "8 to 12 min"),
        (50, 130, "50 s to 2.2 min"),
        (600, 610, "about 10 min"),
        (0.25, 1.04, "0.25 to 1 s"),
        (3000, 9000, "50 min to 2.5 h"),
        (300_000, 7_200_000, "83 to 2,000 h"),
        (59.7, 59.9, "about 60 s"),
    ],
)
def test_a_range_names_a_unit_once(low: float, high: float, expected: str) -> None:
    assert duration_range(Span(low, low, high)) == expected


def test_a_load_is_high_when_more_wants_to_run_than_there_are_cores() -> None:
    assert (
        Load(3.4, 2).is_high
        and Load(3.4, 2).slowdown(2) == pytest.approx(2.7)
        and not Load(2.0, 2).is_high
        and not Load(None, 1).is_high
    )
    now = Load.now()
    assert now.cores >= 1 and (now.average is None or now.average >= 0)
