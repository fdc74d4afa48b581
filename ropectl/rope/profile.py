"""A picture of a method: by how much it slows each pair, on a geometry that many models share. Computed, not drawn."""

from __future__ import annotations

import math
from typing import Any

from ropectl.rope.frequencies import divisors, reach_tokens, rotations, trained_inv_freq, wavelengths
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod

#: LLaMA 2's numbers.
REFERENCE = RopeGeometry(rotary_dim=128, rope_theta=10_000.0, original_max_position_embeddings=4096)
REFERENCE_FACTOR = 4.0

#: Every so many pairs are shown, and the last.
SHOWN_EVERY = 7


def reference_method(kind: type[ScalingMethod]) -> ScalingMethod | None:
    """Returns a method at the reference factor; None where it needs more than a factor, such as a list of divisors."""
    parameters = kind.fill_factor({}, REFERENCE_FACTOR, REFERENCE)
    return None if kind.missing(parameters) else kind.create(parameters)


def divisor_profile(kind: type[ScalingMethod]) -> dict[str, Any] | None:
    """Returns what a method does to pairs of the reference geometry at the reference factor, as JSON values.

    A method that follows the length is looked at for a sequence of s * L tokens.

    Returns:
        Geometry, factor, method, ``seq_len`` (where it follows the length), ``reach`` (up to which length it computes
        rotations seen in training; None for no limit), the attention factor, and rows of pair, wavelength, turns in L and
        divisor (None for a pair that is stopped). None where a factor is not enough to make the method.
    """
    method = reference_method(kind)
    if method is None:
        return None
    length = REFERENCE.original_max_position_embeddings
    seq_len = REFERENCE.target_length(REFERENCE_FACTOR) if method.depends_on_seq_len else None
    frequencies = method.frequencies(REFERENCE, seq_len)
    trained = trained_inv_freq(REFERENCE)
    turns, found = rotations(trained, length), divisors(REFERENCE, frequencies)
    shown = sorted({*range(0, REFERENCE.num_pairs, SHOWN_EVERY), REFERENCE.num_pairs - 1})
    return {
        "geometry": REFERENCE.to_json(),
        "factor": REFERENCE_FACTOR,
        "method": str(method),
        "seq_len": seq_len,
        "reach": reach_tokens(REFERENCE, frequencies),
        "attention_factor": frequencies.attention_factor,
        "pairs": [
            {
                "pair": index,
                "wavelength": wavelengths(trained)[index],
                "turns": turns[index],
                "divisor": None if math.isinf(found[index]) else found[index],
            }
            for index in shown
        ],
    }
