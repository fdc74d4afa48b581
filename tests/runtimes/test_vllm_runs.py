"""What the rules say of every checkpoint that was run in vLLM is what came out of the run."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ropectl.runtimes.evidence import Outcome, releases
from ropectl.runtimes.judge import SERVING_CODES
from ropectl.runtimes.vllm import VERSIONS, Vllm, derived_length
from scripts.runtimes.forms import form_facts

RELEASES = releases("vllm")
#: Tokens of the longer text that was scored, and one that follows.
ASKED = 481


@cache
def configs() -> dict[str, Any]:
    """The unscaled configs that were run, by model type."""
    return dict(json.loads(Path(__file__).with_name("served_configs.json").read_text()))


@pytest.mark.parametrize("rules", VERSIONS, ids=lambda rules: rules.version)
def test_every_run_is_what_the_rules_say(rules: Any) -> None:
    release = RELEASES[rules.version]
    wrong = {}
    for model_type, outcomes in release.runs.items():
        for written, outcome in outcomes.items():
            said = disagreement(rules, configs()[model_type], written, outcome)
            if said:
                wrong[f"{model_type} {written}"] = said
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())


def disagreement(rules: Any, config: dict[str, Any], written: str, outcome: Outcome) -> str:
    """What the rules say of a checkpoint that did not come out; empty where they agree with the run."""
    facts = form_facts(config, written)
    assert facts is not None, written
    reading = Vllm()._read(facts, rules)
    causes = [problem for problem in reading.problems if problem.code not in SERVING_CODES]
    short_table = any(problem.code == "position-table-short" for problem in reading.problems)
    if outcome.stops is not None and short_table:
        return ""  # positions past the table are no numbers
    if (outcome.stops is not None) != (reading.loads is False):
        return f"loads is {reading.loads}, the run: {outcome.stops}"
    if outcome.stops is not None:
        return ""
    if outcome.served not in (None, reading.usable_length):
        return f"serves {reading.usable_length}, the run: {outcome.served}"
    asked = derived_length(rules.view(facts), rules, facts.section) >= ASKED
    if outcome.agrees and causes and asked:
        return f"{causes}, but the run agrees"
    if not outcome.agrees and not causes:
        return f"as meant, but the run differs by {outcome.mean}"
    return ""


def test_enough_was_run() -> None:
    """At least fifteen families in the newest release."""
    runs = RELEASES[VERSIONS[-1].version].runs
    assert len(runs) >= 15
    assert sum(outcome.agrees for outcomes in runs.values() for outcome in outcomes.values()) > 200
