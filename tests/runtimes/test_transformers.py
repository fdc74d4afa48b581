"""The rules for the installed transformers against its real functions, over every kind of file."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.records import RuntimeReading
from ropectl.rope.registry import parse_method
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.transformers import Transformers
from tests.runtimes.cases import CASES, GEOMETRY, lengths_of
from tests.runtimes.real_rotary import real_tables
from tests.tolerances import PARITY


def readings_at(config: dict[str, Any], length: int) -> dict[str, RuntimeReading]:
    """Every version's reading of what it computes for ``length`` tokens."""
    facts = CheckpointFacts(config, GEOMETRY, parse_method("none"), length, "./model")
    return {reading.version: reading for reading in Transformers().readings(facts)}


def assert_same(config: dict[str, Any], version: str, real: dict[str, Any]) -> None:
    """A rule agrees with a real run: it stops where that stops, or computes the same at every length."""
    if "error" in real:
        assert not readings_at(config, 2048)[version].loads, real["error"]
        return
    for length, (inv_freq, attention_factor) in real["tables"].items():
        ours = readings_at(config, int(length))[version]
        assert ours.loads, ours.problems
        assert ours.inv_freq == pytest.approx(inv_freq, rel=PARITY), length
        assert ours.attention_factor == pytest.approx(attention_factor, rel=PARITY), length


@pytest.mark.parametrize("name", CASES)
def test_rules_for_the_installed_version(name: str) -> None:
    config = CASES[name]
    assert_same(config, "5.24", real_tables(config, lengths_of(config)))
