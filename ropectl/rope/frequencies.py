"""Rotary frequencies, and the formulas that the scaling methods share.

Legend: P = d/2 rotary pairs; pair 0 is the fastest. All arithmetic is on Python floats (float64).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ropectl.rope.geometry import RopeGeometry

#: A rotation may exceed its trained value by this share before it counts as unseen (float rounding).
REACH_TOLERANCE = 1e-9


@dataclass(frozen=True)
class RopeFrequencies:
    """The result of a scaling method: all that attention needs to know about it.

    Attributes:
        inv_freq: (P,) angular frequency of each pair [radians/token], fastest pair first.
        attention_factor: A, multiplies cos and sin, so attention logits scale by its square.
    """

    inv_freq: tuple[float, ...]
    attention_factor: float = 1.0


def base_inv_freq(rotary_dim: int, rope_theta: float) -> tuple[float, ...]:
    """Returns the unscaled frequencies b^(-2i/d), shape (P,) [radians/token] (RoFormer, arXiv 2104.09864)."""
    return tuple(rope_theta ** (-2.0 * i / rotary_dim) for i in range(rotary_dim // 2))


def rebased_inv_freq(geometry: RopeGeometry, rope_theta: float) -> tuple[float, ...]:
    """Returns the frequencies of a model whose base is another, shape (P,) [radians/token]; pairs that do not turn stay so."""
    turning, standing = geometry.turning_pairs, geometry.num_pairs - geometry.turning_pairs
    return (*base_inv_freq(geometry.rotary_dim, rope_theta)[:turning], *(0.0,) * standing)


def trained_inv_freq(geometry: RopeGeometry) -> tuple[float, ...]:
    """Returns the frequencies the model was trained with, shape (P,) [radians/token]."""
    return rebased_inv_freq(geometry, geometry.rope_theta)


def wavelengths(inv_freq: Sequence[float]) -> tuple[float, ...]:
    """Returns the tokens per full turn of each pair, shape (P,); infinite for a pair that stands still."""
    return tuple(2 * math.pi / frequency if frequency else math.inf for frequency in inv_freq)


def rotations(inv_freq: Sequence[float], length: int) -> tuple[float, ...]:
    """Returns the turns r_i = length / wavelength_i of each pair within ``length`` tokens, shape (P,)."""
    return tuple(length * frequency / (2 * math.pi) for frequency in inv_freq)


def divisors(geometry: RopeGeometry, frequencies: RopeFrequencies) -> tuple[float, ...]:
    """Returns f_i, by how much each pair is slowed against training, shape (P,); 1 for a pair that never turned."""
    pairs = zip(trained_inv_freq(geometry), frequencies.inv_freq, strict=True)
    return tuple(trained / scaled if scaled else math.inf if trained else 1.0 for trained, scaled in pairs)


def whole_table_divisors(geometry: RopeGeometry, frequencies: RopeFrequencies) -> tuple[float, ...]:
    """Returns the divisors of a table of base b in which all pairs turn, shape (P,); infinite for a pair that stands still.

    For models in which all pairs turn these are the :func:`divisors`.
    """
    pairs = zip(base_inv_freq(geometry.rotary_dim, geometry.rope_theta), frequencies.inv_freq, strict=True)
    return tuple(trained / scaled if scaled else math.inf for trained, scaled in pairs)


def correction_dim(num_rotations: float, geometry: RopeGeometry) -> float:
    """Returns c(r), the real-valued pair index that turns ``num_rotations`` times within L.

    c(r) = d ln(L / (2 pi r)) / (2 ln b); YaRN, arXiv 2309.00071.
    """
    length = geometry.original_max_position_embeddings
    return geometry.rotary_dim * math.log(length / (2 * math.pi * num_rotations)) / (2 * math.log(geometry.rope_theta))


def critical_dimension(geometry: RopeGeometry) -> int:
    """Returns the first critical pair, ceil(c(1)) clamped to [0, k]: from it on, pairs never completed a turn in L.

    Scaling Laws of RoPE-based Extrapolation, arXiv 2310.05209.
    """
    return min(max(math.ceil(correction_dim(1.0, geometry)), 0), geometry.turning_pairs)


def clamp_unit(value: float) -> float:
    """Returns ``value`` limited to [0, 1]."""
    return min(1.0, max(0.0, value))


def blend(geometry: RopeGeometry, factor: float, keep: Sequence[float]) -> tuple[float, ...]:
    """Returns th_i * ((1 - keep_i) / s + keep_i): the arithmetic mix of interpolated and trained frequencies.

    Args:
        geometry: The model's rotary geometry.
        factor: s, extension factor.
        keep: (P,) in [0, 1]; 1 leaves a pair as trained, 0 divides its frequency by ``factor``.
    """
    pairs = zip(trained_inv_freq(geometry), keep, strict=True)
    return tuple((1.0 - share) * trained / factor + share * trained for trained, share in pairs)


def yarn_attention_factor(factor: float, mscale: float = 1.0) -> float:
    """Returns 0.1 * mscale * ln(s) + 1, or 1 for s <= 1 (YaRN, arXiv 2309.00071, eq. 22)."""
    return 1.0 if factor <= 1.0 else 0.1 * mscale * math.log(factor) + 1.0


def reach(geometry: RopeGeometry, frequencies: RopeFrequencies) -> float:
    """Returns how far a model *computes* only rotations that it saw in training [tokens].

    That is the largest n for which no critical pair (one that never completed a turn within L) turns
    further than it did in training: L * min over critical pairs of th_i / inv_freq_i. Infinite where
    every pair that turned completed a turn, or where the critical pairs stand still.
    """
    length = geometry.original_max_position_embeddings
    turns = rotations(trained_inv_freq(geometry), length)
    critical = [f for f, r in zip(divisors(geometry, frequencies), turns, strict=True) if 0 < r < 1.0]
    return length * min(critical) * (1 + REACH_TOLERANCE) if critical else math.inf


def reach_tokens(geometry: RopeGeometry, frequencies: RopeFrequencies) -> int | None:
    """Returns :func:`reach` in whole tokens, None where it is unlimited."""
    value = reach(geometry, frequencies)
    return None if math.isinf(value) else math.floor(value)
