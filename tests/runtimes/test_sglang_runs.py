"""What the rules say of every config that sglang's own classes were asked for is what they made of it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from ropectl.runtimes.evidence import Outcome, releases
from ropectl.runtimes.judge import SERVING_CODES
from ropectl.runtimes.sglang import VERSION, Sglang
from scripts.runtimes.forms import form_facts

RELEASE = releases("sglang")[VERSION]


@cache
def configs() -> dict[str, Any]:
    """The unscaled configs that were run, by model type."""
    return dict(json.loads(Path(__file__).with_name("sglang_configs.json").read_text()))


def test_every_run_is_what_the_rules_say() -> None:
    pairs = [(family, written, each) for family, found in RELEASE.runs.items() for written, each in found.items()]
    said = {f"{family} {written}": disagreement(configs()[family], written, each) for family, written, each in pairs}
    wrong = [f"{name}: {text}" for name, text in said.items() if text]
    assert not wrong, "\n".join(wrong)


def disagreement(config: dict[str, Any], written: str, outcome: Outcome) -> str:
    """What the rules say of a config that did not come out; empty where they agree with the run."""
    facts = form_facts(config, written)
    assert facts is not None, written
    (reading,) = Sglang().readings(facts)
    if (outcome.stops is not None) != (reading.loads is False):
        return f"loads is {reading.loads}, the run: {outcome.stops}"
    if outcome.stops is not None:
        return ""
    if outcome.served != reading.usable_length:
        return f"serves {reading.usable_length}, the run: {outcome.served}"
    causes = [problem for problem in reading.problems if problem.code not in SERVING_CODES]
    if outcome.agrees == bool(causes):
        return f"{causes}, the run: {outcome.deviation}"
    return ""


def test_enough_was_run() -> None:
    assert len(RELEASE.runs) >= 30
    assert sum(outcome.agrees for found in RELEASE.runs.values() for outcome in found.values()) > 300
