"""The rules for transformers, replayed over everything that was run of eight versions: what they say of a file is what came out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runtimes import transformers
from ropectl.runtimes.evidence import evidence_of, releases
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, relative_difference
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.transformers_versions.rules import VERSIONS

GOLDEN = Path(__file__).parent.parent / "golden" / "transformers_runs.json.gz"
NONE = parse_method("none")


@cache
def golden() -> dict[str, Any]:
    return dict(json.loads(gzip.decompress(GOLDEN.read_bytes())))


def runs(version: str) -> Iterator[tuple[str, CheckpointFacts, list[Any] | None]]:
    """Yields the name of a file, the file, and what came out: a table for each length, or None where the version stopped."""
    data = golden()
    for family, results in data["runs"][version].items():
        about = data["families"][family]
        geometry = RopeGeometry(*about["geometry"])
        for (name, change), result in zip(about["files"].items(), results, strict=True):
            config = {**about["common"], **data["changes"][change]}
            length = geometry.original_max_position_embeddings
            facts = CheckpointFacts(config, geometry, NONE, length, "", layer_type=about["layer_type"])
            yield f"{family}: {name}", facts, result and [data["tables"][table] for table in result]


def at(facts: CheckpointFacts, length: int) -> CheckpointFacts:
    return CheckpointFacts(
        facts.config, facts.geometry, facts.method, length, facts.location, layer_type=facts.layer_type
    )


def fault(rules: Any, facts: CheckpointFacts, result: list[Any] | None) -> str | None:
    """What the rules say wrongly of a file; None if nothing, or if they say nothing."""
    for length, table in zip(golden()["lengths"], result or [None, None], strict=True):
        reading = transformers.ruled_reading(rules, at(facts, length))
        if reading.loads is None:
            return None
        if table is None or not reading.loads:
            return None if table is None and reading.loads is False else f"loads: {reading.loads}, ran: {bool(table)}"
        inv_freq, factor = table
        if len(inv_freq) != len(reading.inv_freq or ()):
            return f"{len(inv_freq)} pairs"
        if relative_difference(inv_freq, reading.inv_freq or ()) > DEVIATION_TOLERANCE:
            return f"frequencies at {length}"
        if abs(factor - (reading.attention_factor or 0)) > DEVIATION_TOLERANCE * factor:
            return f"factor {factor}, not {reading.attention_factor}, at {length}"
    return None


@pytest.mark.parametrize("rules", VERSIONS, ids=lambda rules: rules.version)
def test_what_the_rules_say_is_what_came_out(rules: Any) -> None:
    faults = {name: found for name, facts, result in runs(rules.version) if (found := fault(rules, facts, result))}
    assert not faults, f"{len(faults)}, such as {list(faults.items())[:5]}"


@pytest.mark.parametrize("rules", VERSIONS, ids=lambda rules: rules.version)
def test_most_of_what_was_run_is_known(rules: Any) -> None:
    """A rule that says nothing cannot be wrong; so it has to say something nearly always."""
    kinds = [evidence_of("transformers", rules.version, facts).kind for _, facts, _ in runs(rules.version)]
    assert kinds.count("run") > 0.85 * len(kinds)


def test_every_row_was_run() -> None:
    assert list(golden()["runs"]) == list(releases("transformers")) == [rules.version for rules in VERSIONS]
