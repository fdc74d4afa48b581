"""Finds the runtimes and asks them all.

Every module of this package is scanned for :class:`Runtime` subclasses, and every module that an installed package names
under the entry-point group ``ropectl.runtimes``: a new runtime is a new file.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ropectl import runtimes
from ropectl.discovery import find_classes
from ropectl.errors import ConfigError
from ropectl.names import name_hint
from ropectl.records import NextStep, RuntimeReading
from ropectl.rope.catalog import describe_method
from ropectl.rope.method import ScalingMethod
from ropectl.rope.profile import REFERENCE, REFERENCE_FACTOR, reference_method
from ropectl.runtimes.facts import llama_config, patch_facts
from ropectl.runtimes.runtime import CheckpointFacts, Probe, Runtime


@cache
def all_runtimes() -> tuple[Runtime, ...]:
    """Returns every known runtime, in the order of the table.

    Raises:
        ConfigError: If two runtimes share a name.
    """
    found = find_classes(runtimes, Runtime, "ropectl.runtimes", "runtimes")  # type: ignore[type-abstract]
    return tuple(sorted((kind() for kind in found.values()), key=lambda runtime: (runtime.order, runtime.name)))


def find_probe(name: str) -> Probe:
    """Returns the script that asks a runtime for log-probabilities.

    Raises:
        ConfigError: If there is no such runtime, or it has no such script.
    """
    probes = {runtime.name: runtime.probe for runtime in all_runtimes() if runtime.probe is not None}
    if name not in probes:
        raise ConfigError(f"The runtime {name!r} cannot be asked.", name_hint(name, probes))
    return probes[name]


def read_all(facts: CheckpointFacts) -> list[RuntimeReading]:
    """Returns what each version of each runtime will compute from a checkpoint."""
    return [reading for runtime in all_runtimes() for reading in runtime.readings(facts)]


def next_steps(facts: CheckpointFacts) -> list[NextStep]:
    """Returns how to start each runtime on a checkpoint, or why not to."""
    return [runtime.next_step(facts) for runtime in all_runtimes()]


def reference_readings(kind: type[ScalingMethod]) -> list[RuntimeReading] | None:
    """Returns, by runtime and version, whether a LLaMA that ``patch`` scaled with a method is computed as meant.

    On the geometry and factor of :mod:`ropectl.rope.profile`. A method that follows the length is written in its stock
    form, where it has one, else frozen at s * L.

    Returns:
        One for each version of each runtime, in the order of the table; None where a factor is not enough to make the method.
    """
    method = reference_method(kind)
    if method is None:
        return None
    target = REFERENCE.target_length(REFERENCE_FACTOR) if method.depends_on_seq_len else None
    facts = patch_facts(llama_config(REFERENCE), REFERENCE, method, "MODEL", target_length=target)
    return read_all(facts)


def describe_with_runtimes(kind: type[ScalingMethod]) -> dict[str, Any]:
    """Returns all that is published about a method, and what runtimes make of it, as JSON values without frequencies."""
    readings = reference_readings(kind)
    if readings is not None:
        found = [reading.to_json() for reading in readings]
        shown = [{key: value for key, value in each.items() if key != "inv_freq"} for each in found]
    return {**describe_method(kind), "readings": None if readings is None else shown}
