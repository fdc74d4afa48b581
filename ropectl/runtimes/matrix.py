"""Finds the runtimes and asks them all.

Every module of this package is scanned for :class:`Runtime` subclasses: a new runtime is a new file.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from ropectl.errors import ConfigError
from ropectl.names import name_hint
from ropectl.records import NextStep, RuntimeReading
from ropectl.runtimes.runtime import CheckpointFacts, Probe, Runtime


@cache
def all_runtimes() -> tuple[Runtime, ...]:
    """Returns every known runtime, in the order of the table."""
    found = []
    for info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        module = importlib.import_module(f"ropectl.runtimes.{info.name}")
        found += [
            candidate()
            for candidate in vars(module).values()
            if isinstance(candidate, type)
            and issubclass(candidate, Runtime)
            and candidate.__module__ == module.__name__
            and hasattr(candidate, "name")
        ]
    return tuple(sorted(found, key=lambda runtime: (runtime.order, runtime.name)))


def find_probe(name: str) -> Probe:
    """Returns how a runtime is asked for log-probabilities.

    Raises:
        ConfigError: If there is no such runtime, or no way to ask it.
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
