"""Measures whether a model's real rotary code keeps the promises of rotary position embedding.

Every promise has a control: the same measurement on something known to be broken must fail, or the
check could not have found anything. Legend: H vectors, T positions, P rotary pairs, 2P channels, A attention
factor, L' the length up to which the code is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ropectl.errors import PatchError
from ropectl.hf.model.rotary import INV_FREQ_TOLERANCE, rotary_module, verify_rope
from ropectl.hf.self_test.code import RotaryCode, built_in
from ropectl.hf.self_test.decay import mean_scores
from ropectl.rope.frequencies import RopeFrequencies

#: Half a unit in the last place of float32, relative.
ROUNDING = 2.0**-24

#: Roundings of a rotated score that do not grow with position: tables, two products, a sum, for q and k.
FIXED_ROUNDINGS = 64

#: Up to here rounded tables are shown to matter [tokens].
CONTROL_LENGTH = 1024

NUM_VECTORS, NUM_POSITIONS, SEED = 16, 64, 0


@dataclass(frozen=True)
class Check:
    """A measured number and its bound.

    Attributes:
        name: The measurement, with its unit.
        measured: The number.
        allowed: Its bound.
        relation: ``at most``; ``more than`` for a control, which must show damage; ``refused`` where the damage
            must also be found by ``verify_rope``.
        passed: Whether it holds.
    """

    name: str
    measured: float
    allowed: float
    relation: str
    passed: bool

    @classmethod
    def at_most(cls, name: str, measured: float, allowed: float) -> Check:
        """Returns a promise: the number must not exceed the bound."""
        return cls(name, measured, allowed, "at most", measured <= allowed)

    @classmethod
    def more_than(cls, name: str, measured: float, allowed: float) -> Check:
        """Returns a control: the number must exceed the bound."""
        return cls(name, measured, allowed, "more than", measured > allowed)


def check_tables(model: torch.nn.Module, expected: RopeFrequencies, name: str) -> Check:
    """Checks the largest relative difference between a model's frequencies and the float64 formula."""
    actual = rotary_module(model).inv_freq.double()
    wanted = torch.tensor(expected.inv_freq, dtype=torch.float64)
    error = torch.where(wanted == 0, actual.abs(), (actual - wanted).abs() / wanted)
    return Check.at_most(name, float(error.max()), INV_FREQ_TOLERANCE)


def check_offset(code: RotaryCode, expected: RopeFrequencies, length: int) -> list[Check]:
    """Checks that a score depends only on the offset; with tables rounded to bfloat16 it depends on the position too."""
    rounded = replace(code, table_dtype=torch.bfloat16)
    return [
        Check.at_most(
            "same offset, other positions: score spread",
            offset_spread(code, expected, length),
            2 * rounding_bound(expected, length, rotations=2),
        ),
        Check.more_than(
            f"with bfloat16 cos, sin, up to {CONTROL_LENGTH} (control)",
            offset_spread(rounded, expected, CONTROL_LENGTH),
            2 * rounding_bound(expected, CONTROL_LENGTH, rotations=2),
        ),
    ]


def offset_spread(code: RotaryCode, expected: RopeFrequencies, length: int) -> float:
    """Returns by how much the score of a query and a key varies over absolute positions, relative to |q||k|A^2.

    The largest over random pairs of vectors and offsets from 0 to half of ``length`` [tokens].
    """
    q, k = sign_vectors(code), sign_vectors(code, seed=SEED + 1)
    spreads = []
    for offset in sorted({min(offset, length // 2) for offset in (0, 1, 7, 64, length // 4, length // 2)}):
        keys = _positions(length - offset)
        scores = code.scores(q, k, keys + offset, keys) / (code.width * expected.attention_factor**2)
        spreads.append(scores.amax(-1) - scores.amin(-1))
    return float(torch.cat(spreads).max())  # torch's maximum keeps NaN; Python's loses it


def rounding_bound(expected: RopeFrequencies, length: int, rotations: int) -> float:
    """Returns how far a float32 score may be off by the rounding of its angles, relative to |q||k|A^2.

    An angle is position times frequency, rounded once. For vectors with equal norms in every pair the score
    is off by the mean of the angles' errors at most.
    """
    mean_frequency = sum(expected.inv_freq) / len(expected.inv_freq)
    return ROUNDING * (rotations * length * mean_frequency + FIXED_ROUNDINGS)


def check_norms(code: RotaryCode, expected: RopeFrequencies, length: int) -> Check:
    """Checks that norms are kept; the attention factor multiplies query and key, so scores get its square."""
    q, k = normal_vectors(code), normal_vectors(code, seed=SEED + 1)
    queries, keys = code.rotate(q, k, _positions(length))
    product = queries.norm(dim=-1) * keys.norm(dim=-1)
    before = (q.double().norm(dim=-1) * k.double().norm(dim=-1))[:, None]
    square = expected.attention_factor**2
    worst = float((product / before / square - 1).abs().max())
    name = "norms |q||k| kept (relative)" if square == 1 else f"norms |q||k| times A^2 = {square:.4f} (relative)"
    return Check.at_most(name, worst, FIXED_ROUNDINGS * ROUNDING)


def check_decay(code: RotaryCode, expected: RopeFrequencies, length: int) -> Check:
    """Checks the mean score over distance, by the code for q = k of equal pair norms, against its closed form."""
    distances = decay_distances(length)
    closed_form = mean_scores(code.module.inv_freq.double().tolist(), distances)
    worst = float((measured_decay(code, expected, distances) - closed_form).abs().max())
    return Check.at_most("mean score by distance, to closed form", worst, rounding_bound(expected, length, 1))


def decay_distances(length: int, at_most: int = 256) -> torch.Tensor:
    """Returns distances from 1 up to ``length``, evenly spaced on a logarithmic axis [tokens]."""
    return torch.tensor(sorted({round(length ** (point / (at_most - 1))) for point in range(at_most)}))


def measured_decay(code: RotaryCode, expected: RopeFrequencies, distances: torch.Tensor) -> torch.Tensor:
    """Returns the code's score of q = k at each distance, divided by |q||k|A^2, shape as ``distances``."""
    ones = torch.ones(1, code.width)
    scores = code.scores(ones, ones, distances, torch.zeros(1, dtype=torch.long))
    return scores[0] / (code.width * expected.attention_factor**2)


def check_casts(code: RotaryCode, expected: RopeFrequencies, length: int) -> list[Check]:
    """Checks that a model built in bfloat16 keeps float32 tables; one that is cast does not, and ``verify_rope`` must say so."""
    loaded = check_tables(built_in(code, torch.bfloat16), expected, "tables of a model loaded with dtype=bfloat16")
    phase, refused = cast_damage(code, expected, length)
    name = "tables after .to(bfloat16): phase at L' [rad]"
    return [loaded, Check(name, phase, 0.0, "refused", refused)]


def cast_damage(code: RotaryCode, expected: RopeFrequencies, length: int) -> tuple[float, bool]:
    """Returns the largest error of an angle at ``length`` after a cast [radians], and whether ``verify_rope`` refuses it.

    The model is cast and put back.
    """
    module, buffers = code.module, dict(code.module._buffers)
    parameters = next(code.model.parameters()).dtype
    try:
        code.model.to(torch.bfloat16)
        cast = module.inv_freq.double()
        try:
            verify_rope(code.model, expected)
            refused = False
        except PatchError:
            refused = True
    finally:
        code.model.to(parameters)
        module._buffers.update(buffers)
    wanted = torch.tensor(expected.inv_freq, dtype=torch.float64)
    return float((cast - wanted).abs().max()) * length, refused


def _positions(length: int) -> torch.Tensor:
    """Returns positions from the first to the last of ``length``, evenly spaced [tokens]."""
    return torch.tensor(sorted({round(point * (length - 1) / (NUM_POSITIONS - 1)) for point in range(NUM_POSITIONS)}))


def normal_vectors(code: RotaryCode, seed: int = SEED) -> torch.Tensor:
    """Returns random vectors, (H, 2P) float32."""
    return torch.randn(NUM_VECTORS, code.width, generator=torch.Generator().manual_seed(seed))


def sign_vectors(code: RotaryCode, seed: int = SEED) -> torch.Tensor:
    """Returns random vectors of entries 1 and -1: every pair weighs the same, however channels are paired."""
    return torch.where(normal_vectors(code, seed) < 0, -1.0, 1.0)
