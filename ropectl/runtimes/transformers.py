"""transformers: what its versions compute. The rules are in ``transformers_versions/``; each was run, and the runs are data."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from ropectl.records import NextStep, Problem, ReadingEvidence, RuntimeReading
from ropectl.runtimes.evidence import evidence_of, releases
from ropectl.runtimes.judge import read
from ropectl.runtimes.runtime import CheckpointFacts, Runtime
from ropectl.runtimes.transformers_versions.installed import built_reading, installed_version
from ropectl.runtimes.transformers_versions.model_types import absence, has_type, looked_at
from ropectl.runtimes.transformers_versions.rules import VERSIONS, TransformersRules
from ropectl.runtimes.transformers_versions.traits import family_table
from ropectl.runtimes.views import View

ABSENT = "no-such-model-type"


class Transformers(Runtime):
    """Hugging Face transformers, with stock classes. It sets no limit on the length of a sequence."""

    name = "transformers"
    order = 10

    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        """Returns the reading of every version that was run, and last that of the installed one."""
        installed = installed_version()
        shown = None if installed is None else ".".join(installed.split(".")[:2])
        older = [ruled_reading(rules, facts) for rules in VERSIONS if rules.version != shown]
        if installed is None or shown is None:
            return older
        release = releases(self.name).get(shown)
        rules = next((one for one in VERSIONS if one.version == shown), None)
        if release is not None and rules is not None and release.version == installed:
            reading = ruled_reading(rules, facts)
            if reading.evidence.kind == "run":
                return [*older, reading]
        nearest = replace(rules or VERSIONS[-1], version=shown)
        return [*older, built_reading(partial(_predicted, facts, nearest), facts, partial(_serve, facts))]

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        readings = self.readings(facts)
        newest = readings[-1]
        wrong = [line for line in newest.problems if line.code != "tokenizer-capped"]
        if wrong:
            return NextStep(self.name, None, "; ".join(line.text for line in wrong))
        notes = [line.text for line in newest.problems]
        judged = [reading for reading in readings[:-1] if reading.problems and reading.problems[0].code != ABSENT]
        bad = [reading.version for reading in judged if reading.problems != newest.problems]
        if bad:
            notes.append(f"computes something else in {', '.join(bad)}")
        if facts.method.depends_on_seq_len:
            notes.append("the whole batch is rotated for its longest sequence, and cached keys keep older rotations")
        location = json.dumps(facts.location, ensure_ascii=False)
        return NextStep(self.name, f"{_class(facts)}.from_pretrained({location})", None, tuple(notes))


def ruled_reading(rules: TransformersRules, facts: CheckpointFacts) -> RuntimeReading:
    """Returns what a version that was run makes of a checkpoint."""
    model_type = str(facts.config.get("model_type") or facts.model_type)  # a part needs no class of its own
    if has_type(rules.version, model_type) is False:
        return _absent(facts, rules.version, model_type)
    return _predicted(facts, rules, evidence_of(Transformers.name, rules.version, facts))


def _absent(facts: CheckpointFacts, version: str, model_type: str) -> RuntimeReading:
    if "auto_map" in facts.config:
        evidence = ReadingEvidence("unknown", source=f"{model_type} comes with its own code")
        return RuntimeReading(Transformers.name, version, None, None, None, None, None, None, (), evidence)
    problem = Problem(ABSENT, absence(version, model_type))
    return RuntimeReading(
        Transformers.name, version, False, None, None, None, None, None, (problem,), looked_at(version)
    )


def _predicted(facts: CheckpointFacts, rules: TransformersRules, evidence: ReadingEvidence) -> RuntimeReading:
    """Returns what the rules of a version, and what is known of the family, say."""
    known = releases(Transformers.name)
    release = known.get(rules.version) or known.get(VERSIONS[-1].version)
    traits = release.traits_of(facts.model_type) if release else frozenset()
    table = partial(family_table, rules=rules, facts=facts, traits=traits)
    return read(Transformers.name, rules.version, facts, rules.view, table, partial(_serve, facts), evidence)


def _serve(facts: CheckpointFacts, view: View) -> tuple[int | None, list[Problem]]:
    limit = facts.tokenizer_max_length
    if limit is None or limit >= facts.target_length:
        return None, []
    text = f"the tokenizer's model_max_length is {limit}: with truncation=True it cuts there"
    return None, [Problem("tokenizer-capped", text)]


def _class(facts: CheckpointFacts) -> str:
    """Returns the class to type: models that also see or hear are loaded by the one that they name."""
    architectures = facts.config.get("architectures") or ()
    is_nested = facts.section is not facts.config or any("_config" in key for key in facts.config)
    is_multimodal = is_nested and "CausalLM" not in str(architectures)
    return str(architectures[0]) if is_multimodal and architectures else "AutoModelForCausalLM"
