"""Tells what each runtime makes of a method on a plain LLaMA config: the part of a method's description that runtimes decide."""

from __future__ import annotations

from typing import Any

from ropectl.records import RuntimeReading
from ropectl.rope.catalog import describe_method
from ropectl.rope.method import ScalingMethod
from ropectl.rope.profile import REFERENCE, REFERENCE_FACTOR, reference_method
from ropectl.runtimes.facts import llama_config, patch_facts
from ropectl.runtimes.matrix import read_all

#: Where the checkpoint would be.
PLACE = "MODEL"


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
    facts = patch_facts(llama_config(REFERENCE), REFERENCE, method, PLACE, target_length=target)
    return read_all(facts)


def describe_with_runtimes(kind: type[ScalingMethod]) -> dict[str, Any]:
    """Returns all that is published about a method, and what runtimes make of it, as JSON values without frequencies."""
    readings = reference_readings(kind)
    if readings is not None:
        found = [reading.to_json() for reading in readings]
        shown = [{key: value for key, value in each.items() if key != "inv_freq"} for each in found]
    return {**describe_method(kind), "readings": None if readings is None else shown}
