"""Judges what versions of transformers computed by the rules, finds each family's traits, and puts it into the form that is kept."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ropectl.errors import ConfigError
from ropectl.hf.config.families import ROPE_TYPE_ALIASES
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.registry import parse_method
from ropectl.runtimes.compact_runs import compact
from ropectl.runtimes.evidence import form_of
from ropectl.runtimes.judge import DEVIATION_TOLERANCE, relative_difference
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.transformers_versions.model_types import FALLBACK_THETA
from ropectl.runtimes.transformers_versions.rules import VERSIONS, TransformersRules
from ropectl.runtimes.transformers_versions.traits import TRAITS, family_table
from ropectl.runtimes.views import CannotLoadError, v5_block
from scripts.runtimes.rope_files import FamilyFiles

#: Traits that nothing but a block with ``alpha`` can show.
NEED_ALPHA = ("alpha", "alpha-until-limit")
RULES = {rules.version: rules for rules in VERSIONS}
#: A table for each length, ``[frequencies, attention factor]``; or the first line of the error.
Result = Sequence[Any] | str


def facts_of(subject: FamilyFiles, name: str) -> CheckpointFacts:
    """Returns the facts of one file, as far as the rules read them."""
    length = subject.geometry.original_max_position_embeddings
    none = parse_method("none")
    return CheckpointFacts(subject.files[name], subject.geometry, none, length, "", layer_type=subject.layer_type)


def predicted(
    rules: TransformersRules, facts: CheckpointFacts, traits: Sequence[str], lengths: Sequence[int]
) -> list[RopeFrequencies] | None:
    """Returns what the rules say of a file, for each length; None where they say that it stops."""
    try:
        table = family_table(rules.view(facts), rules, facts, traits)
        return [table.frequencies(length) for length in lengths]
    except (CannotLoadError, ConfigError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None


def difference(result: Result, expected: Sequence[RopeFrequencies] | None) -> float:
    """Returns the largest relative difference of a frequency or of the factor; infinite where only one of the two stops."""
    if isinstance(result, str) or expected is None:
        return 0.0 if isinstance(result, str) and expected is None else float("inf")
    largest = 0.0
    for (inv_freq, factor), one in zip(result, expected, strict=True):
        if len(inv_freq) != len(one.inv_freq):
            return float("inf")
        off = abs(factor - one.attention_factor) / one.attention_factor
        largest = max(largest, relative_difference(inv_freq, one.inv_freq), off)
    return largest


def fitted_traits(
    rules: TransformersRules, subject: FamilyFiles, results: Mapping[str, Result], lengths: Sequence[int]
) -> tuple[tuple[str, ...], set[str]]:
    """Returns the fewest traits that explain most of a family's results, and the names of the files left unexplained."""
    facts = {name: facts_of(subject, name) for name in results}

    def unexplained(traits: tuple[str, ...]) -> set[str]:
        return {
            name
            for name, result in results.items()
            if difference(result, predicted(rules, facts[name], traits, lengths)) > DEVIATION_TOLERANCE
        }

    candidates = [name for name in TRAITS if name not in NEED_ALPHA or _computes_alpha(results)]
    best: tuple[tuple[str, ...], set[str]] = ((), unexplained(()))
    for size in (1, 2):
        for traits in itertools.combinations(candidates, size):
            if best[1]:
                best = min(best, (traits, unexplained(traits)), key=lambda one: len(one[1]))
    for trait in candidates if best[1] else ():
        best = min(best, ((*best[0], trait), unexplained((*best[0], trait))), key=lambda one: len(one[1]))
    return best


def _computes_alpha(results: Mapping[str, Result]) -> bool:
    return any(name.startswith("hunyuan") and not isinstance(result, str) for name, result in results.items())


def runs_file(
    found: Mapping[str, Mapping[str, Any]], subjects: Sequence[FamilyFiles], lengths: Sequence[int]
) -> dict[str, Any]:
    """Returns the content of ``transformers.json``.

    Args:
        found: What each version computed, by the version that a row shows.
        subjects: The families and their files.
        lengths: The lengths of sequences [tokens].
    """
    newest = list(found)[-1]
    content: dict[str, Any] = {}
    meant: dict[tuple[str, str], list[RopeFrequencies] | None] = {}
    for version in reversed(found):
        rules = RULES[version]
        traits: dict[str, list[str]] = {}
        unexplained: dict[str, list[str]] = {}
        runs: dict[str, dict[str, Any]] = {}
        for subject in subjects:
            family, results = subject.model_type, found[version]["results"].get(subject.model_type)
            if results is None or all(isinstance(result, str) for result in results.values()):
                continue  # what stops on every file does not like the sizes of the small model
            own, left = fitted_traits(rules, subject, results, lengths)
            if version == newest:
                for name in results:
                    meant[family, name] = predicted(rules, _renamed(facts_of(subject, name)), own, lengths)
            forms = {name: form_of(v5_block(facts_of(subject, name))) for name in results}
            odd = {forms[name] for name in left}
            print(version, family, *own, f"{len(left)} of {len(results)} unexplained: {sorted(odd)}" if left else "")
            if len(left) > len(results) / 4:
                continue  # the rules say too little about this family
            for trait in own:
                traits.setdefault(trait, []).append(family)
            if odd:
                unexplained[family] = sorted(odd)
            runs[family] = dict(_outcomes(results, forms, {name: meant.get((family, name)) for name in results}))
        content[version] = {
            "version": found[version]["version"],
            "date": found[version]["date"],
            "source": "its own config and rotary classes",
            "traits": traits,
            "unexplained": unexplained,
            "runs": compact(runs, DEVIATION_TOLERANCE),
        }
    return {version: content[version] for version in found}


def _renamed(facts: CheckpointFacts) -> CheckpointFacts:
    """Returns a file with the present name of its type: what an old name meant is meant by the new one."""
    block = facts.config.get("rope_scaling") or {}
    name = ROPE_TYPE_ALIASES.get(block.get("type"))
    if name is None:
        return facts
    return replace(facts, config={**facts.config, "rope_scaling": {**block, "type": name, "rope_type": name}})


def _outcomes(
    results: Mapping[str, Result], forms: Mapping[str, str], meant: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields an outcome for each scaling, of the first of the dialects that it was written in."""
    seen = set()
    for name, result in results.items():
        written = name.split(" | ")[0]
        if written in seen:
            continue
        seen.add(written)
        if isinstance(result, str):
            yield written, {"form": forms[name], "stops": result.split(" got ")[0][:100]}
        elif meant[name] is not None:
            off = difference(result, meant[name])
            yield written, {"form": forms[name], "deviation": min(off, 1e9)}


def types_file(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the content of ``transformers_types.json``: which version has which model type, and the bases that are not the usual one."""
    names = sorted({name for one in found.values() for name in one["model_types"]})
    bases = {
        version: {
            name: defaults["rope_theta"]
            for name, defaults in one["defaults"].items()
            if defaults.get("rope_theta", FALLBACK_THETA) != FALLBACK_THETA
        }
        for version, one in found.items()
    }
    return {
        "versions": {version: [one["version"], one["date"]] for version, one in found.items()},
        "types": {name: "".join(str(int(name in one["model_types"])) for one in found.values()) for name in names},
        "rope_theta": bases,
        "block": {
            version: {name: defaults["block"] for name, defaults in one["defaults"].items() if "block" in defaults}
            for version, one in found.items()
        },
    }


def golden(
    found: Mapping[str, Mapping[str, Any]], subjects: Sequence[FamilyFiles], lengths: Sequence[int]
) -> dict[str, Any]:
    """Returns all files and results with each repeated value once: files as what their families' files have in common, and changes."""
    changes, tables, families = _Shared(), _Shared(), {}
    for subject in subjects:
        seen = Counter(json.dumps(pair) for config in subject.files.values() for pair in config.items())
        common = dict(json.loads(text) for text, count in seen.items() if count == len(subject.files))
        files = {
            name: changes.number({key: value for key, value in config.items() if key not in common})
            for name, config in subject.files.items()
        }
        geometry = subject.geometry
        families[subject.model_type] = {
            "layer_type": subject.layer_type,
            "geometry": [geometry.rotary_dim, geometry.rope_theta, geometry.original_max_position_embeddings, geometry.num_turning],
            "common": common,
            "files": files,
        }  # fmt: skip
    runs = {
        version: {
            family: [None if isinstance(result, str) else [tables.number(table) for table in result] for result in results.values()]
            for family, results in one["results"].items()
        }
        for version, one in found.items()
    }  # fmt: skip
    return {"lengths": lengths, "changes": changes.values, "tables": tables.values, "families": families, "runs": runs}


class _Shared:
    """Values, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, value: Any) -> int:
        """Returns the place of a value, which is added if it is new."""
        text = json.dumps(value)
        if text not in self._numbers:
            self._numbers[text] = len(self.values)
            self.values.append(value)
        return self._numbers[text]
