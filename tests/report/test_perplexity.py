"""The tables of ``eval-perplexity`` at 80 columns lose no digit, whatever the numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ropectl.evaluate.perplexity.presets import PRESETS
from ropectl.records import PerplexityPoint, PositionBin
from ropectl.report.views import eval_perplexity
from ropectl.report.writers.terminal import terminal_lines
from ropectl.rope.geometry import RopeGeometry

from . import records

HUGE = PerplexityPoint(
    context_length=1_048_576,
    perplexity=1.5e7,
    num_tokens=123_456_789,
    num_documents=100,
    beyond_capacity=True,
    ci_low=1.4e7,
    ci_high=1.6e7,
    bits_per_byte=12.3456,
    window_mean_perplexity=1.7e7,
    positions=[PositionBin(1, 2, 3.0, 1), PositionBin(2, 3, 3.0, 3), PositionBin(524_288, 1_048_576, 9e8, 123_000_000)],
    gain_over_trained=-11.25,
    gain_ci_low=-12.5,
    gain_ci_high=-10.125,
    short_context=524_288,
    num_candidates=223_456_789,
    candidates_perplexity=2.5e7,
)


RECORD = replace(
    records.made(records.perplexity()),
    geometry=RopeGeometry(rotary_dim=32, rope_theta=10_000.0, original_max_position_embeddings=131_072),
    points=[HUGE, PerplexityPoint(2_097_152)],
    verdict=["models up to 4."],
)


def rendered(**changes: Any) -> str:
    parts = eval_perplexity.VIEW.all_parts(replace(RECORD, **changes))
    text = "\n".join(line.plain for line in terminal_lines(parts, 80))
    assert all(len(line) <= 80 for line in text.splitlines()) and "\u2026" not in text
    return " ".join(text.split())


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_every_number_is_there(preset: str | None) -> None:
    settings = PRESETS[preset] if preset else None
    text = rendered(preset=preset, stride=settings.stride if settings else 262_144)
    shown = ["1048576*", "1.50e+07", "1.40e+07 to 1.60e+07", "12.3456", "123456789"]
    assert all(number in text for number in shown), text
    assert ("1.70e+07" in text) == bool(settings and settings.shows_window_mean)
    assert "Gain over 131072 tokens" in text and "-11.2500 -12.5000 to -10.1250" in text
    assert "1 to 2 1.5000 4" in text and "524288 to 1048575 7.3171 123000000" in text
    assert "2097152 n/a" in text and "models up to 4." in text and "past the length" in text
    assert "100 documents of hf:some/name:train#text; every window begins with <|begin_of_text|>" in text


def test_key_tokens_tell_their_share() -> None:
    text = rendered(protocol="key-tokens")
    assert "1048576* 524288 223456789 123456789 55.25% 2.50e+07" in text and "2097152 n/a n/a 0 n/a n/a" in text
