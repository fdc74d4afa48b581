"""Makes the record of a self-test: checks per method, decay curves, bounds of the base."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch

from ropectl.errors import ConfigError
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.self_test.checks import (
    Check,
    check_casts,
    check_decay,
    check_norms,
    check_offset,
    check_tables,
    decay_distances,
    measured_decay,
)
from ropectl.hf.self_test.code import RotaryCode
from ropectl.hf.self_test.decay import decay_curve, lowest_base
from ropectl.hf.self_test.pairing import check_pairing
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.abf import AdjustedBaseFrequency

#: Bases whose decay is shown next to the model's own: RoFormer's, Llama 3's, Code Llama's.
SHOWN_BASES = (1e4, 5e5, 1e6)

#: Positions are float32 in the rotary modules; past this they are no longer whole numbers.
LONGEST = 2**24

_MEASURED_POINTS = 33


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limits torch to one thread: with thousands of small tensors, threads wait for each other longer than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
def self_test(
    name: str,
    code: RotaryCode,
    geometry: RopeGeometry,
    methods: Sequence[ScalingMethod],
    length: int,
    seq_len: int | None = None,
) -> dict[str, Any]:
    """Returns all checks of a model's rotary code, and how its mean score decays with distance, as JSON values.

    Args:
        name: The model, for messages.
        code: Its rotary code.
        geometry: What it was trained with.
        methods: Scalings to check, each applied to the code and undone.
        length: L', the largest position that is checked [tokens].
        seq_len: The length at which length-dependent methods are frozen; ``length`` if None [tokens].

    Raises:
        ConfigError: If ``length`` is past what float32 positions can count.
        MethodError: If a method cannot work on this geometry.
    """
    if length > LONGEST:
        raise ConfigError(
            f"The target of {length} tokens is past {LONGEST}: rotary modules count positions in float32.",
            "Type a smaller --target-length.",
        )
    checks: list[dict[str, Any]] = []
    pairings: set[str | None] = set()
    curves = [
        _curve(code, geometry, AdjustedBaseFrequency(rope_theta=base), length, None, "base")
        for base in sorted({geometry.rope_theta, *SHOWN_BASES})
    ]
    for method in methods:
        frozen = (seq_len or length) if method.depends_on_seq_len else None
        expected = method.frequencies(geometry, frozen)
        with apply_rope(code.model, method, geometry=geometry, seq_len=frozen):
            found, pairing = run_checks(code, expected, length)
        pairings.add(pairing)
        for check in found:  # JSON has neither infinity nor NaN, which broken code may well produce
            measured = check.measured if math.isfinite(check.measured) else None
            checks.append({"method": str(method), "seq_len": frozen, **asdict(check), "measured": measured})
        curves.append(_curve(code, geometry, method, length, frozen, "method"))
    trained = geometry.original_max_position_embeddings
    # The bound of the base holds for tables in which every pair turns.
    bounded = sorted({trained, length}) if geometry.num_turning is None else []
    return {
        "model": name,
        "geometry": geometry.to_json(),
        "target_length": length,
        "function": code.name,
        "pairing": next(iter(pairings)) if len(pairings) == 1 else None,
        "passed": all(check["passed"] for check in checks),
        "checks": checks,
        "decay": curves,
        "base_bounds": [
            {"context_length": context, "lowest_base": lowest_base(geometry.rotary_dim, context)} for context in bounded
        ],
    }


def run_checks(code: RotaryCode, expected: RopeFrequencies, length: int) -> tuple[list[Check], str | None]:
    """Returns every check on a model's rotary code, and which pairing it uses.

    Args:
        code: The code, with the scaling already applied.
        expected: What the scaling computes.
        length: L', the largest position that is checked [tokens].
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


def _curve(
    code: RotaryCode, geometry: RopeGeometry, method: ScalingMethod, length: int, frozen: int | None, kind: str
) -> dict[str, Any]:
    """Returns the decay under one method: closed form at every distance, and the code's own score at some."""
    expected = method.frequencies(geometry, frozen)
    distances = decay_distances(length, _MEASURED_POINTS)
    with apply_rope(code.model, method, geometry=geometry, seq_len=frozen):
        scores = measured_decay(code, expected, distances)
    base = method.rope_theta if isinstance(method, AdjustedBaseFrequency) else geometry.rope_theta
    return {
        "kind": kind,
        "method": str(method),
        "rope_theta": base,
        "seq_len": frozen,
        **decay_curve(expected.inv_freq, length),
        "measured": {"distances": distances.tolist(), "scores": scores.tolist()},
    }
