"""Tells what each runtime makes of a method on a plain LLaMA config: the part of a method's description that runtimes decide."""

from __future__ import annotations

from typing import Any

from ropectl.rope.method import ScalingMethod
from ropectl.rope.profile import REFERENCE, REFERENCE_FACTOR, reference_method
from ropectl.runtimes.facts import llama_config, patch_facts
from ropectl.runtimes.matrix import read_all

#: Where the checkpoint would be.
PLACE = "MODEL"


def reference_readings(kind: type[ScalingMethod]) -> list[dict[str, Any]] | None:
    """Returns, by runtime and version, whether a LLaMA that ``patch`` scaled with a method is computed as meant.

    On the geometry and factor of :mod:`ropectl.rope.profile`. A method that follows the length is written in its stock
    form, where it has one, else frozen at s * L.

    Returns:
        What :meth:`ropectl.runtimes.RuntimeReading.to_json` gives but the frequencies, in the order of the table; None
        where a factor is not enough to make the method.
    """
    method = reference_method(kind)
    if method is None:
        return None
    target = REFERENCE.target_length(REFERENCE_FACTOR) if method.depends_on_seq_len else None
    facts = patch_facts(llama_config(REFERENCE), REFERENCE, method, PLACE, target_length=target)
    readings = [reading.to_json() for reading in read_all(facts)]
    return [{key: value for key, value in reading.items() if key != "inv_freq"} for reading in readings]
