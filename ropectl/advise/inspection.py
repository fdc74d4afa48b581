"""Computes everything that the formulas say about one method on one geometry."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ropectl.records import InspectionRecord
from ropectl.rope.derived import derived_values
from ropectl.rope.frequencies import critical_dimension, divisors, reach_tokens, rotations, wavelengths
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.notes import method_notes


def inspect_rope(
    geometry: RopeGeometry,
    method: ScalingMethod,
    seq_len: int | None = None,
    warnings: Sequence[str] = (),
    target_length: int | None = None,
) -> InspectionRecord:
    """Returns frequencies, wavelengths, rotations, divisors and reach.

    Args:
        geometry: The geometry that the model was trained with.
        method: The scaling to look at.
        seq_len: Sequence length for length-dependent methods [tokens].
        warnings: Warnings to put first.
        target_length: The context that is meant; by default the one that the method aims at [tokens].

    Raises:
        MethodError: If the method cannot work on this geometry.
    """
    frequencies = method.frequencies(geometry, seq_len)
    length = geometry.original_max_position_embeddings
    patch = method.config_patch(geometry, seq_len)
    return InspectionRecord(
        geometry=geometry,
        method=str(method),
        seq_len=seq_len,
        inv_freq=list(frequencies.inv_freq),
        attention_factor=frequencies.attention_factor,
        wavelengths=[None if math.isinf(value) else value for value in wavelengths(frequencies.inv_freq)],
        rotations=list(rotations(frequencies.inv_freq, length)),
        divisors=[None if math.isinf(value) else value for value in divisors(geometry, frequencies)],
        critical_dimension=critical_dimension(geometry),
        rope_parameters=patch.rope_parameters,
        target_length=target_length or method.target_length(geometry),
        reach=reach_tokens(geometry, frequencies),
        derived=derived_values(method, geometry, seq_len, target_length),
        warnings=[*warnings, *method_notes(method, geometry, seq_len)],
    )
