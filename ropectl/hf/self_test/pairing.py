"""Checks which channels a model turns together, against a naive rotation by the definition in float64."""

from __future__ import annotations

import torch

from ropectl.hf.config.families import HALF_SPLIT, INTERLEAVED
from ropectl.hf.self_test.checks import NUM_POSITIONS, SEED, Check, normal_vectors
from ropectl.hf.self_test.code import RotaryCode
from ropectl.rope.frequencies import RopeFrequencies

PAIRINGS = (HALF_SPLIT, INTERLEAVED)

#: Positions at which the pairing is determined [tokens].
PAIRING_LENGTH = 256

#: A score may differ this much from the float64 one, relative to |q||k|A^2; another pairing by ten times more.
PAIRING_TOLERANCE = 1e-3


def check_pairing(code: RotaryCode, expected: RopeFrequencies) -> tuple[list[Check], str | None]:
    """Checks which channels turn together: the code must agree with one naive rotation, and differ from the other.

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
    q, k = normal_vectors(code), normal_vectors(code, seed=SEED + 1)
    generator = torch.Generator().manual_seed(SEED)
    queries, keys = torch.randint(0, PAIRING_LENGTH, (2, NUM_POSITIONS), generator=generator)
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
    num_pairs = len(expected.inv_freq)
    first, second = (
        (slice(0, num_pairs), slice(num_pairs, None))
        if pairing == HALF_SPLIT
        else (slice(0, None, 2), slice(1, None, 2))
    )
    frequencies = torch.tensor(expected.inv_freq, dtype=torch.float64)
    query, key = (
        torch.complex(vectors[:, first].double(), vectors[:, second].double())[:, None]
        * torch.exp(1j * torch.outer(positions.double(), frequencies))
        for vectors, positions in ((q, query_positions), (k, key_positions))
    )
    return (query * key.conj()).real.sum(-1) * expected.attention_factor**2
