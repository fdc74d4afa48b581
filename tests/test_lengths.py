"""Lengths as people write them."""

from __future__ import annotations

import pytest

from ropectl.errors import ConfigError
from ropectl.lengths import format_length, lengths_text, parse_length, parse_lengths


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["4096"], [4096]),
        (["8k"], [8192]),
        (["1.5K"], [1536]),
        (["1m"], [1 << 20]),
        (["4096,2048", "2k"], [2048, 4096]),
        (["1k..32k"], [1024, 2048, 4096, 8192, 16_384, 32_768]),
        (["1k..5k/2k"], [1024, 3072, 5120]),
        (["1k..5000"], [1024, 2048, 4096]),
        (["3..3"], [3]),
    ],
)
def test_understood(texts: list[str], expected: list[int]) -> None:
    assert parse_lengths(texts) == expected


@pytest.mark.parametrize(
    "text", ["", "abc", "-5", "1", "0", "1.3", "1k..", "..4k", "4k..2k", "1k..1m/2", "1k..8k/0", "1kk", "nan"]
)
def test_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_lengths([text])


@pytest.mark.parametrize(("length", "text"), [(512, "512"), (1024, "1k"), (1536, "1536"), (131_072, "128k")])
def test_formatted_and_read_back(length: int, text: str) -> None:
    assert format_length(length) == text and parse_length(text) == length


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([512], "512"),
        ([512, 256, 512], "256 and 512"),
        ([256, 512, 1024, 2048], "256, 512, 1024 and 2048"),
        ([2048, 256, 512, 1024, 300], "5 lengths from 256 to 2048"),
    ],
)
def test_measured_lengths_are_named_or_counted(lengths: list[int], text: str) -> None:
    assert lengths_text(lengths) == text
