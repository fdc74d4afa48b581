"""How a row of the matrix is known: by a run, by reading, or not at all, and then nothing is claimed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropectl.report.tables.runtimes import runtime_parts
from ropectl.report.writers.terminal import terminal_lines
from ropectl.runtimes import evidence
from ropectl.runtimes.evidence import AGREEMENT, Outcome, form_of, releases
from ropectl.runtimes.matrix import next_steps, read_all
from tests.runtimes.cases import YARN, facts, scaled

RUNS = {"0.32": {"version": "0.32.0", "date": "2026-11-30", "source": "small models", "runs": {
    "llama": {"yarn": {"form": "yarn", "mean": 1e-6, "largest": 3e-6}, "dynamic-ntk": {"form": "dynamic", "stops": "no"}},
}}}  # fmt: skip


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A world in which only one version of one runtime was run, on one family."""
    (tmp_path / "vllm.json").write_text(json.dumps(RUNS))
    monkeypatch.setattr(evidence, "RUNS", tmp_path)
    releases.cache_clear()
    yield
    releases.cache_clear()


def reading(config: dict[str, object]) -> object:
    return next(one for one in read_all(facts(config, "yarn")) if (one.runtime, one.version) == ("vllm", "0.32"))


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "run"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, "read"),
        ({"model_type": "qwen3"}, "unknown"),
    ],
)
def test_what_a_row_is_known_by(changes: dict[str, object], kind: str) -> None:
    found = reading({**scaled("yarn", **YARN), **changes})
    assert found.evidence.kind == kind
    assert (found.evidence.version, found.evidence.date) == (
        (None, None) if kind == "unknown" else ("0.32.0", "2026-11-30")
    )
    claims = (found.loads, found.inv_freq, found.usable_length, found.max_deviation)
    assert all(claim is None for claim in claims) == (kind == "unknown")
    assert found.ok == (kind == "run") and found.to_json()["evidence"]["kind"] == kind


@pytest.mark.usefixtures("runs")
def test_a_family_that_was_never_run_is_not_known() -> None:
    meant = facts({**scaled("yarn", **YARN), "model_type": "qwen3"}, "yarn")
    lines = [line.plain for line in terminal_lines(runtime_parts(read_all(meant)), 80)]
    row = next(line for line in lines if "vllm 0.32" in line)
    assert "not known" in row and row.split()[-1] == "-"
    assert any("not known for this family" in line for line in lines)
    assert next(step for step in next_steps(meant) if step.runtime == "vllm")


@pytest.mark.parametrize(
    ("block", "form"),
    [
        ({}, "default"),
        ({"type": "linear", "factor": 2.0}, "linear"),
        ({"rope_type": "yarn", **YARN, "rope_theta": 1e4}, "yarn"),
        ({"rope_type": "yarn", **YARN, "attention_factor": None}, "yarn"),
        ({"rope_type": "yarn", **YARN, "mscale_all_dim": 1.0, "mscale": 1.0}, "yarn+mscale+mscale_all_dim"),
    ],
)
def test_the_form_of_a_block(block: dict[str, object], form: str) -> None:
    assert form_of(block) == form


@pytest.mark.parametrize(
    ("outcome", "agrees"),
    [
        (Outcome("yarn", mean=AGREEMENT), True),
        (Outcome("yarn", mean=2 * AGREEMENT), False),
        (Outcome("yarn", deviation=1e-6), True),
        (Outcome("yarn", deviation=1e-4), False),
        (Outcome("yarn", stops="ValueError"), False),
    ],
)
def test_what_agrees(outcome: Outcome, agrees: bool) -> None:
    assert outcome.agrees == agrees
