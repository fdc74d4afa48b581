"""Recognises Llama 3.1's scaling in a list of divisors.

llama.cpp's converter turns the ``llama3`` type into divisors and forgets its parameters, the trained length
among them. The ramp is linear in rotations, so each divisor on it tells which length it was made for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ropectl.rope.frequencies import divisors, trained_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import MAX_FACTOR
from ropectl.rope.methods.llama3 import Llama3

#: Ends of the ramp [rotations] in Llama 3.1, and in the paper's NTK-by-parts.
_RAMPS = ((1.0, 4.0), (1.0, 32.0))

#: Divisors are stored in float32 (relative).
_TOLERANCE = 1e-5


def recognise_llama3(values: Sequence[float], rope_theta: float, length: int | None) -> dict[str, Any] | None:
    """Returns the ``llama3`` block that computes these divisors, or None.

    Args:
        values: (P,) divisor of each pair.
        rope_theta: b, base of the unscaled frequencies.
        length: L where it is known [tokens]; otherwise it is found from a divisor on the ramp.
    """
    factor = float(f"{max(values):.6g}")  # a round number, as users type it
    if not 1.0 < factor < MAX_FACTOR or min(values) < 1.0 - _TOLERANCE:
        return None
    for low, high in _RAMPS:
        trained = length or _trained_length(values, rope_theta, factor, low, high)
        if trained is None or trained < 2:
            continue
        geometry = RopeGeometry(2 * len(values), rope_theta, trained)
        method = Llama3(factor=factor, low_freq_factor=low, high_freq_factor=high)
        expected = divisors(geometry, method.frequencies(geometry))
        if all(math.isclose(a, b, rel_tol=_TOLERANCE) for a, b in zip(values, expected, strict=True)):
            return {"rope_type": "llama3", **method.model_dump(), "original_max_position_embeddings": trained}
    return None


def _trained_length(values: Sequence[float], rope_theta: float, factor: float, low: float, high: float) -> int | None:
    """Returns L from the divisor nearest to the middle of the ramp: g = (1/f - 1/s)/(1 - 1/s), r = low + g (high - low)."""
    shares = [(1 / value - 1 / factor) / (1 - 1 / factor) for value in values]
    pair = min(range(len(values)), key=lambda i: abs(shares[i] - 0.5))
    if not _TOLERANCE < shares[pair] < 1 - _TOLERANCE:
        return None
    inv_freq = trained_inv_freq(RopeGeometry(2 * len(values), rope_theta, 2))
    return round((low + shares[pair] * (high - low)) * 2 * math.pi / inv_freq[pair])
