"""Profiles of methods: by how much each slows each pair, on a geometry that many models share."""

from __future__ import annotations

import math
from dataclasses import dataclass
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


@dataclass(frozen=True)
class PairProfile:
    """The effect of a method on one pair.

    Attributes:
        pair: The index of the pair.
        wavelength: Tokens of a whole turn, as trained.
        turns: Turns within the trained length.
        divisor: The factor by which it is slowed; None for a pair that is stopped.
    """

    pair: int
    wavelength: float
    turns: float
    divisor: float | None


@dataclass(frozen=True)
class DivisorProfile:
    """The effect of a method on pairs of a geometry.

    Attributes:
        geometry: The geometry.
        factor: s, the factor of the method.
        method: Method spec.
        seq_len: The length for which a method that follows it is evaluated [tokens]; None for the others.
        reach: The length up to which it computes rotations seen in training [tokens]; None for no limit.
        attention_factor: A, on cos and sin.
        pairs: Some of the pairs.
    """

    geometry: RopeGeometry
    factor: float
    method: str
    seq_len: int | None
    reach: int | None
    attention_factor: float
    pairs: tuple[PairProfile, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the profile as JSON values."""
        return {**vars(self), "geometry": self.geometry.to_json(), "pairs": [vars(pair) for pair in self.pairs]}


def divisor_profile(kind: type[ScalingMethod]) -> DivisorProfile | None:
    """Returns the effect of a method on pairs of the reference geometry at the reference factor.

    A method that follows the length is evaluated for a sequence of s * L tokens.

    Returns:
        The profile; None where a factor is not enough to make the method.
    """
    method = reference_method(kind)
    if method is None:
        return None
    length = REFERENCE.original_max_position_embeddings
    seq_len = REFERENCE.target_length(REFERENCE_FACTOR) if method.depends_on_seq_len else None
    frequencies = method.frequencies(REFERENCE, seq_len)
    trained = trained_inv_freq(REFERENCE)
    turns, found, tokens = rotations(trained, length), divisors(REFERENCE, frequencies), wavelengths(trained)
    shown = sorted({*range(0, REFERENCE.num_pairs, SHOWN_EVERY), REFERENCE.num_pairs - 1})
    return DivisorProfile(
        REFERENCE,
        REFERENCE_FACTOR,
        str(method),
        seq_len,
        reach_tokens(REFERENCE, frequencies),
        frequencies.attention_factor,
        tuple(PairProfile(i, tokens[i], turns[i], None if math.isinf(found[i]) else found[i]) for i in shown),
    )
