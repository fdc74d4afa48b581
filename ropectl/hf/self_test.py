"""Checks of a model's real rotary code with numbers: what rotary position embedding promises, and what breaks it.

Every promise has a control beside it: the same measurement on something known to be broken must fail, or the
check could not have found anything. Legend: H vectors, T positions, P rotary pairs, 2P channels, A attention
factor, L' the length up to which the code is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from ropectl.errors import PatchError
from ropectl.hf.decay import mean_scores
from ropectl.hf.patch import INV_FREQ_TOLERANCE, rotary_module, verify_rope
from ropectl.hf.rotary_code import RotaryCode, built_in
from ropectl.rope.frequencies import RopeFrequencies

#: Half a unit in the last place of float32, relative.
ROUNDING = 2.0**-24

#: Roundings of a rotated score that do not grow with position: tables, two products, a sum, for q and k.
FIXED_ROUNDINGS = 64

#: A score may differ this much from the float64 one, relative to |q||k|A^2; another pairing by ten times more.
PAIRING_TOLERANCE = 1e-3

#: Positions at which pairings are told apart, and up to which rounded tables are shown to matter [tokens].
PAIRING_LENGTH, CONTROL_LENGTH = 256, 1024

PAIRINGS = ("half-split", "interleaved")

_NUM_VECTORS, _NUM_POSITIONS, _SEED = 32, 64, 0


@dataclass(frozen=True)
class Check:
    """One measured number and what it must be.

    Attributes:
        name: What was measured, with its unit.
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
        """A promise: the number must not exceed the bound."""
        return cls(name, measured, allowed, "at most", measured <= allowed)

    @classmethod
    def more_than(cls, name: str, measured: float, allowed: float) -> Check:
        """A control: the number must exceed the bound."""
        return cls(name, measured, allowed, "more than", measured > allowed)


def run_checks(code: RotaryCode, expected: RopeFrequencies, length: int) -> tuple[list[Check], str | None]:
    """Returns every check on a model's rotary code, and which pairing it uses.

    Args:
        code: The code, with the scaling already applied.
        expected: What the scaling computes.
        length: L', the largest position looked at [tokens].
    """
    pairing_checks, pairing = check_pairing(code, expected)
    checks = [
        check_tables(code.model, expected, "tables against the formula (relative)"),
        *check_offset(code, expected, length),
        check_norms(code, expected, length),
        *pairing_checks,
        check_decay(code, expected, length),
        *check_casts(code, expected, length),
    ]
    return checks, pairing


def check_tables(model: torch.nn.Module, expected: RopeFrequencies, name: str) -> Check:
    """The largest relative difference between a model's frequencies and the float64 formula."""
    actual = rotary_module(model).inv_freq.double()
    wanted = torch.tensor(expected.inv_freq, dtype=torch.float64)
    error = torch.where(wanted == 0, actual.abs(), (actual - wanted).abs() / wanted)
    return Check.at_most(name, float(error.max()), INV_FREQ_TOLERANCE)


def check_offset(code: RotaryCode, expected: RopeFrequencies, length: int) -> list[Check]:
    """A score depends only on the offset; with tables rounded to bfloat16 it depends on the position too."""
    rounded = replace(code, table_dtype=torch.bfloat16)
    return [
        Check.at_most(
            "same offset, other positions: score spread",
            offset_spread(code, expected, length),
            2 * rounding_bound(expected, length, rotations=2),
        ),
        Check.more_than(
            f"the same with bfloat16 cos, sin, to {CONTROL_LENGTH} (control)",
            offset_spread(rounded, expected, CONTROL_LENGTH),
            2 * rounding_bound(expected, CONTROL_LENGTH, rotations=2),
        ),
    ]


def offset_spread(code: RotaryCode, expected: RopeFrequencies, length: int) -> float:
    """Returns by how much the score of a query and a key varies over absolute positions, relative to |q||k|A^2.

    The largest over random pairs of vectors and offsets from 0 to half of ``length`` [tokens].
    """
    q, k = _signs(code), _signs(code, seed=_SEED + 1)
    spread = 0.0
    for offset in sorted({min(offset, length // 2) for offset in (0, 1, 7, 64, length // 4, length // 2)}):
        keys = torch.linspace(0, length - 1 - offset, _NUM_POSITIONS, dtype=torch.float64).long().unique()
        scores = code.scores(q, k, keys + offset, keys) / (code.width * expected.attention_factor**2)
        spread = max(spread, float((scores.amax(-1) - scores.amin(-1)).max()))
    return spread


def rounding_bound(expected: RopeFrequencies, length: int, rotations: int) -> float:
    """Returns how far a float32 score may be off by the rounding of its angles, relative to |q||k|A^2.

    An angle is position times frequency, rounded once. For vectors with equal norms in every pair the score
    is off by the mean of the angles' errors at most.
    """
    mean_frequency = sum(expected.inv_freq) / len(expected.inv_freq)
    return ROUNDING * (rotations * length * mean_frequency + FIXED_ROUNDINGS)


def check_norms(code: RotaryCode, expected: RopeFrequencies, length: int) -> Check:
    """A rotation keeps the norm of query and key; the attention factor multiplies each, so scores get its square."""
    q, k = _normal(code), _normal(code, seed=_SEED + 1)
    positions = torch.linspace(0, length - 1, _NUM_POSITIONS, dtype=torch.float64).long().unique()
    queries, keys = code.rotate(q, k, positions)
    product = queries.norm(dim=-1) * keys.norm(dim=-1)
    before = (q.double().norm(dim=-1) * k.double().norm(dim=-1))[:, None]
    square = expected.attention_factor**2
    worst = float((product / before / square - 1).abs().max())
    name = "norms |q||k| kept (relative)" if square == 1 else f"norms |q||k| times A^2 = {square:.4f} (relative)"
    return Check.at_most(name, worst, FIXED_ROUNDINGS * ROUNDING)


def check_pairing(code: RotaryCode, expected: RopeFrequencies) -> tuple[list[Check], str | None]:
    """Which channels turn together: the code must agree with one naive rotation, and differ from the other.

    Returns:
        The checks and the pairing found; None where the code agrees with neither, or, having a single pair,
        with both.
    """
    errors = {pairing: pairing_error(code, expected, pairing) for pairing in PAIRINGS}
    nearest, other = sorted(PAIRINGS, key=lambda pairing: errors[pairing])
    checks = [Check.at_most(f"{nearest} pairs, against float64", errors[nearest], PAIRING_TOLERANCE)]
    if len(expected.inv_freq) == 1:
        return checks, None
    checks.append(Check.more_than(f"{other} pairs instead (control)", errors[other], 10 * PAIRING_TOLERANCE))
    return checks, nearest if all(check.passed for check in checks) else None


def pairing_error(code: RotaryCode, expected: RopeFrequencies, pairing: str) -> float:
    """Returns the largest difference from the naive scores, relative to |q||k|A^2, over random vectors and positions."""
    q, k = _normal(code), _normal(code, seed=_SEED + 1)
    generator = torch.Generator().manual_seed(_SEED)
    queries, keys = torch.randint(0, PAIRING_LENGTH, (2, _NUM_POSITIONS), generator=generator)
    actual = code.scores(q, k, queries, keys)
    wanted = naive_scores(q, k, queries, keys, expected, pairing)
    norms = q.double().norm(dim=-1) * k.double().norm(dim=-1) * expected.attention_factor**2
    return float(((actual - wanted).abs() / norms[:, None]).max())


def naive_scores(
    q: torch.Tensor,
    k: torch.Tensor,
    query_positions: torch.Tensor,
    key_positions: torch.Tensor,
    expected: RopeFrequencies,
    pairing: str,
) -> torch.Tensor:
    """Returns scores by the definition: each pair of channels is a complex number, turned by position times frequency.

    Args:
        q: (H, 2P).
        k: (H, 2P).
        query_positions: (T,) [tokens].
        key_positions: (T,) [tokens].
        expected: Frequencies and attention factor.
        pairing: ``half-split`` (channels i and i + P) or ``interleaved`` (2i and 2i + 1).

    Returns:
        (H, T), complex numbers of float64 inside (RoFormer, arXiv 2104.09864, section 3.2).
    """
    q, k, num_pairs = q.double(), k.double(), len(expected.inv_freq)
    total = torch.zeros(len(q), len(query_positions), dtype=torch.float64)
    for pair, frequency in enumerate(expected.inv_freq):
        first, second = (pair, pair + num_pairs) if pairing == "half-split" else (2 * pair, 2 * pair + 1)
        query, key = torch.complex(q[:, first], q[:, second]), torch.complex(k[:, first], k[:, second])
        turned_query, turned_key = (
            vector[:, None] * torch.exp(1j * positions.double() * frequency)
            for vector, positions in ((query, query_positions), (key, key_positions))
        )
        total += (turned_query * turned_key.conj()).real
    return total * expected.attention_factor**2


def check_decay(code: RotaryCode, expected: RopeFrequencies, length: int) -> Check:
    """The mean score over distance, by the code for q = k of equal pair norms, against its closed form."""
    distances = decay_distances(length)
    closed_form = mean_scores(code.module.inv_freq.double().tolist(), distances)
    worst = float((measured_decay(code, expected, distances) - closed_form).abs().max())
    return Check.at_most("mean score by distance, against closed form", worst, rounding_bound(expected, length, 1))


def decay_distances(length: int) -> torch.Tensor:
    """Returns at most 256 distances up to ``length``, evenly spaced on a logarithmic axis [tokens]."""
    return torch.logspace(0, torch.log2(torch.tensor(float(length))).item(), 256, base=2).round().long().unique()


def measured_decay(code: RotaryCode, expected: RopeFrequencies, distances: torch.Tensor) -> torch.Tensor:
    """Returns the code's score of q = k at each distance, divided by |q||k|A^2, shape as ``distances``."""
    ones = torch.ones(1, code.width)
    scores = code.scores(ones, ones, distances, torch.zeros(1, dtype=torch.long))
    return scores[0] / (code.width * expected.attention_factor**2)


def check_casts(code: RotaryCode, expected: RopeFrequencies, length: int) -> list[Check]:
    """Built in bfloat16 a model keeps float32 tables; cast to it, it does not, and ``verify_rope`` must say so."""
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


def checks_record(method: str, checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Returns checks as JSON values."""
    return [{"method": method, **asdict(check)} for check in checks]


def _normal(code: RotaryCode, seed: int = _SEED) -> torch.Tensor:
    """Random vectors, (H, 2P) float32."""
    return torch.randn(_NUM_VECTORS, code.width, generator=torch.Generator().manual_seed(seed))


def _signs(code: RotaryCode, seed: int = _SEED) -> torch.Tensor:
    """Random vectors of entries 1 and -1: every pair weighs the same, however channels are paired."""
    return torch.where(_normal(code, seed) < 0, -1.0, 1.0)
