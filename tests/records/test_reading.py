"""Records as they stand in files are read into their types and written again without a change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.errors import ConfigError
from ropectl.records import HarnessRecord, RuntimeReading, to_json
from ropectl.records.reading import KINDS, read_as, read_record
from ropectl.report.run_files import check_version
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import llama_config, patch_facts
from ropectl.runtimes.matrix import read_all
from tests.report import records

STORED = Path(__file__).parents[2] / "docs" / "records"

GIVEN: dict[str, dict[str, Any]] = {
    **{path.stem: json.loads(path.read_text()) for path in STORED.glob("*.json") if ".schema" not in path.name},
    "comparison": records.comparison(),
    "several models": records.several_models(),
    "perplexity": records.perplexity("tail"),
    "passkey": records.passkey("position"),
    "tasks": records.tasks(),
}


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """Places where a value of ``before`` is not in ``after``, and where keys are in another order."""
    if isinstance(before, dict):
        kept = [key for key in after if key in before]
        found = [f"{place}: order"] * (kept != list(before))
        return found + [d for key in kept for d in differences(before[key], after[key], f"{place}.{key}")]
    if isinstance(before, list):
        pairs = enumerate(zip(before, after, strict=True))
        return [d for index, (a, b) in pairs for d in differences(a, b, f"{place}.{index}")]
    return [] if before == after else [f"{place}: {before} {after}"]


@pytest.mark.parametrize("name", [name for name in GIVEN if (STORED / f"{name}.json").is_file()])
def test_what_a_command_wrote_is_written_alike(name: str) -> None:
    again = json.loads(json.dumps(to_json(read_record(GIVEN[name], name))))
    assert differences(GIVEN[name], again) == [] == differences(again, GIVEN[name])


@pytest.mark.parametrize("name", GIVEN)
def test_reading_twice_changes_nothing(name: str) -> None:
    once = read_record(GIVEN[name], name)
    assert read_record(json.loads(json.dumps(to_json(once))), name) == once


def test_keys_that_are_no_names() -> None:
    given = {"model": "m", "results": {"x": {"acc,none": 0.5}}, "n-samples": {"x": {"effective": 3}}}
    record = read_record(given, "harness")
    assert isinstance(record, HarnessRecord) and record.n_samples == {"x": {"effective": 3}}
    assert to_json(record)["n-samples"] == given["n-samples"] and "n-shot" not in to_json(record)


def test_readings_of_runtimes() -> None:
    geometry = RopeGeometry(32, 10_000.0, 512)
    facts = patch_facts(llama_config(geometry), geometry, parse_method("yarn:factor=4"), "MODEL", None)
    for reading in read_all(facts):
        assert read_as(RuntimeReading, json.loads(json.dumps(reading.to_json())), "reading", "inspect") == reading


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_what_is_missing(kind: type[Any]) -> None:
    with pytest.raises(ConfigError, match=f"a record of {kind.written_by}, but .* is wrong"):
        read_record(dict.fromkeys(kind.known_by, 5), "record.json")


def test_an_impossible_geometry() -> None:
    record = records.comparison()
    record["geometry"] = {**record["geometry"], "rotary_dim": 7}
    with pytest.raises(ConfigError, match="geometry is wrong: rotary_dim = 7 is not possible"):
        read_record(record, "record.json")


def test_another_version() -> None:
    with pytest.raises(ConfigError, match="newer"):
        check_version({"schema_version": 2}, Path("record.json"))
