"""The rules of llama.cpp say of every model that was run what came out of the run."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from ropectl.gguf.architectures import DIVISOR_TENSORS_READ, architecture_of
from ropectl.hf.config.geometry import describe_rope
from ropectl.json_reading import read_object
from ropectl.rope.registry import parse_method
from ropectl.runtimes.evidence import AGREEMENT, RUNS, form_of, releases
from ropectl.runtimes.facts import config_facts, patch_facts
from ropectl.runtimes.judge import SERVING_CODES
from ropectl.runtimes.llama_cpp import VERSION, LlamaCpp
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.views import v5_block
from scripts.runtimes.llama_cpp_cases import METHODS, SIZES, TRAINED, Case, cases_of
from scripts.runtimes.shrunken import saved_config

RELEASE = releases("llama.cpp")[VERSION]
FAMILIES = sorted(RELEASE.runs)

#: What one text of one length, in a context that is large enough, cannot show.
NOT_SEEN = (*SERVING_CODES, "static-per-server")


@cache
def base(model_type: str) -> dict[str, Any]:
    return saved_config(model_type, SIZES)


def facts_of(model_type: str, case: Case) -> CheckpointFacts:
    """What is known of the checkpoint that was run."""
    config = base(model_type)
    if case.method is None:
        config = {**config, **case.changes}
        return config_facts(config, describe_rope(config), "./model")
    rope = describe_rope(config, TRAINED)
    method = parse_method(case.method, case.factor, rope.geometry)
    return patch_facts(config, rope.geometry, method, "./model", case.freeze_at, layer_type=rope.layer_type)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_the_rules_say_what_the_runs_showed(model_type: str) -> None:
    cases = {case.name: case for case in cases_of(model_type)}
    for name, outcome in RELEASE.runs[model_type].items():
        facts = facts_of(model_type, cases[name])
        assert form_of(v5_block(facts)) == outcome.form, name
        reading = LlamaCpp().readings(facts)[0]
        assert reading.evidence.kind == "run"
        wrong = [problem for problem in reading.problems if problem.code not in NOT_SEEN]
        assert bool(reading.loads) == (outcome.stops is None), (name, outcome, reading.problems)
        assert (not wrong) == outcome.agrees, (name, outcome, reading.problems)
        assert outcome.stops or reading.usable_length == outcome.served, name


def test_enough_was_run() -> None:
    """A family counts that was run in every form that can be written for it."""
    whole = [kind for kind, runs in RELEASE.runs.items() if len(runs.keys() & {case.name for case in METHODS}) >= 12]
    assert len({architecture_of(kind) for kind in whole}) >= 25
    agreeing = [outcome for runs in RELEASE.runs.values() for outcome in runs.values() if outcome.agrees]
    assert len(agreeing) > 150 and all((outcome.mean or 0) <= AGREEMENT for outcome in agreeing)


def test_agreement_is_not_for_want_of_an_effect() -> None:
    """Where scaling is said to be computed rightly, it makes a difference that would show."""
    for runs in RELEASE.runs.values():
        for name in ("pi", "yarn"):
            if name in runs and runs[name].agrees:
                assert (runs[name].effect or 0) > 10 * AGREEMENT


def test_files_have_the_architectures_that_the_table_says() -> None:
    recorded = read_object(RUNS / "llama.cpp.json")[VERSION]["architectures"]
    assert len(recorded) >= 25
    assert {kind: architecture_of(kind) for kind in recorded} == recorded


def test_divisors_are_written_only_where_they_were_applied() -> None:
    """A file of any other architecture does not load with them."""
    recorded = read_object(RUNS / "llama.cpp.json")[VERSION]["divisors"]
    assert len(recorded) >= 25
    assert {
        name for name, found in recorded.items() if found == "read"
    } == recorded.keys() & DIVISOR_TENSORS_READ.keys()
