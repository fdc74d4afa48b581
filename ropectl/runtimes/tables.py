"""Computes the frequencies that a runtime makes of its view of a config, with its peculiarities as arguments.

The formulas are those of ``ropectl.rope``; here they get the numbers that a runtime reads, not those that were meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.records import Problem
from ropectl.rope.frequencies import RopeFrequencies, base_inv_freq, yarn_attention_factor
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.methods.ntk import ntk_base
from ropectl.rope.methods.ntk_by_parts import blend_by_rotations
from ropectl.rope.methods.yarn import blend_by_index
from ropectl.rope.proportional import turning_pairs
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View


@dataclass(frozen=True)
class Table:
    """Rotary frequencies as a runtime builds them.

    Attributes:
        frequencies: Maps the length of a sequence [tokens] to its frequencies.
        causes: Red lines that hold if the frequencies are not what was meant.
        attention_causes: Red lines that hold if the attention factor is not what was meant.
        problems: Red lines that always hold.
    """

    frequencies: Callable[[int], RopeFrequencies]
    causes: tuple[Problem, ...] = ()
    attention_causes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


def static(inv_freq: Sequence[float], attention_factor: float = 1.0, **red_lines: tuple[Problem, ...]) -> Table:
    """Returns a table that is the same at every length."""
    frequencies = RopeFrequencies(tuple(inv_freq), attention_factor)
    return Table(lambda seq_len: frequencies, **red_lines)


def default(view: View) -> Table:
    """Returns the table without scaling."""
    return static(base_inv_freq(view.rotary_dim, view.theta))


def linear(view: View) -> Table:
    """Returns every frequency divided by ``factor``."""
    factor = view.required("factor")
    return static([trained / factor for trained in base_inv_freq(view.rotary_dim, view.theta)])


def ntk_static(view: View, factor: float) -> Table:
    """Returns the NTK-aware base of one scale, at every length."""
    return static(base_inv_freq(view.rotary_dim, ntk_base(_geometry(view, 2), factor)))


def dynamic(view: View) -> Table:
    """Returns the NTK-aware base of the current length, past ``max_position_embeddings``."""
    factor, start = view.required("factor"), view.max_positions

    def frequencies(seq_len: int) -> RopeFrequencies:
        scale = max(1.0, factor * seq_len / start - (factor - 1))
        return RopeFrequencies(base_inv_freq(view.rotary_dim, ntk_base(_geometry(view, start), scale)))

    text = f"dynamic scales only past max_position_embeddings = {start}: nothing up to there"
    return Table(frequencies, causes=(Problem("dynamic-no-op", text),))


def yarn(
    view: View,
    length: int,
    factor: float,
    attention: tuple[float, tuple[Problem, ...]],
    truncate: bool,
    causes: tuple[Problem, ...] = (),
) -> Table:
    """Returns the ramp in the dimension index.

    Args:
        view: The config as read.
        length: What the runtime takes for the trained length [tokens].
        factor: What it takes for the factor.
        attention: A, and the reasons why it may not be what was meant.
        truncate: Whether it rounds the ramp outwards.
        causes: Red lines if the frequencies differ.
    """
    fast, slow = view.block.get("beta_fast") or 32.0, view.block.get("beta_slow") or 1.0
    inv_freq = blend_by_index(_geometry(view, length), factor, fast, slow, truncate)
    return static(inv_freq, attention[0], causes=causes, attention_causes=attention[1])


def yarn_attention(
    block: Mapping[str, Any],
    factor: float,
    *,
    absolute: bool = True,
    multiplier: bool = False,
    mscales: bool = True,
    null_only: bool = False,
) -> tuple[float, tuple[Problem, ...]]:
    """Returns A of a yarn block, and the keys that the runtime ignores.

    Args:
        block: The scaling block.
        factor: s, as the runtime takes it.
        absolute: Whether it reads ``attention_factor``, the final value.
        multiplier: Whether it reads ``attn_factor``, which multiplies.
        mscales: Whether it reads the ratio of ``mscale`` and ``mscale_all_dim``.
        null_only: Whether a zero ``mscale`` counts as given.
    """
    given, multiply = block.get("attention_factor"), block.get("attn_factor")
    pair = (block.get("mscale"), block.get("mscale_all_dim"))
    has_pair = all(value is not None for value in pair) if null_only else all(pair)
    causes = []
    if given is not None and not absolute:
        causes.append(Problem("attention-factor-ignored", f"does not read attention_factor = {given:g}"))
    if multiply is not None and not multiplier:
        causes.append(Problem("attention-factor-ignored", f"does not read attn_factor = {multiply:g}"))
    if multiply is not None and multiplier:
        causes.append(Problem("attention-factor-misread", f"multiplies by attn_factor = {multiply:g}"))
    if has_pair and not mscales:
        causes.append(Problem("attention-factor-ignored", "does not read mscale and mscale_all_dim"))
    if given is not None and absolute:
        return float(given), tuple(causes)
    value = yarn_attention_factor(factor)
    if has_pair and mscales:
        value = yarn_attention_factor(factor, float(pair[0] or 0)) / yarn_attention_factor(factor, float(pair[1] or 0))
    return value * (float(multiply) if multiply is not None and multiplier else 1.0), tuple(causes)


def llama3(view: View, defaults: Mapping[str, float] | None = None, low_first: bool = False) -> Table:
    """Returns the ramp in rotations; a step where both bounds are equal.

    No runtime refuses bounds in the wrong order. Nothing then lies between them, and the one that is asked first is a step.

    Args:
        view: The config as read.
        defaults: Values for missing keys, where the runtime has any.
        low_first: Whether the lower bound is asked first.
    """

    def value(key: str) -> float:
        found = (defaults or {}).get(key) if view.block.get(key) is None else None
        return float(view.required(key) if found is None else found)

    low, high = value("low_freq_factor"), value("high_freq_factor")
    if low > high:
        low = high = low if low_first else high
    geometry = _geometry(view, int(value(ORIGINAL)))
    return static(blend_by_rotations(geometry, value("factor"), low, high))


def longrope(
    view: View,
    is_long: Callable[[int], bool],
    attention_factor: float | tuple[float, float],
    causes: tuple[Problem, ...] = (),
    attention_causes: tuple[Problem, ...] = (),
    problems: tuple[Problem, ...] = (),
) -> Table:
    """Returns the table of given divisors.

    Args:
        view: The config as read.
        is_long: Returns for the length of a sequence whether ``long_factor`` serves it.
        attention_factor: A, or that of the short and that of the long list.
        causes: Red lines if the frequencies differ.
        attention_causes: Red lines if A differs.
        problems: Red lines in any case.

    Raises:
        CannotLoadError: If a list is missing or does not have one value per pair.
    """
    lists = view.required("short_factor"), view.required("long_factor")
    for values in lists:
        if len(values) != view.rotary_dim // 2:
            raise CannotLoadError(f"stops: longrope lists of {len(values)} values for {view.rotary_dim // 2} pairs")
    factors = attention_factor if isinstance(attention_factor, tuple) else (attention_factor, attention_factor)
    trained = base_inv_freq(view.rotary_dim, view.theta)
    both = [
        RopeFrequencies(tuple(th / f for th, f in zip(trained, values, strict=True)), factor)
        for values, factor in zip(lists, factors, strict=True)
    ]
    return Table(lambda seq_len: both[is_long(seq_len)], causes, attention_causes, problems)


def su_attention(factor: float, length: int) -> float:
    """Returns sqrt(1 + ln s / ln L), or 1 for s <= 1 (LongRoPE, arXiv 2402.13753)."""
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(length))


def proportional(view: View, reads_factor: bool, reads_share: bool = True) -> Table:
    """Returns a table in which the fastest share of the pairs turns and the others stand still.

    Args:
        view: The config as read.
        reads_factor: Whether frequencies are divided by ``factor``.
        reads_share: Whether ``partial_rotary_factor`` of the block is read; without it all pairs rotate.
    """
    share = view.block.get("partial_rotary_factor", 1.0)
    kept = turning_pairs(view.block if reads_share else {}, view.rotary_dim)
    factor = float(view.block.get("factor", 1.0))
    trained = base_inv_freq(view.rotary_dim, view.theta)
    inv_freq = [th / (factor if reads_factor else 1.0) if i < kept else 0.0 for i, th in enumerate(trained)]
    causes = []
    if not reads_factor and factor != 1.0:
        causes.append(Problem("factor-ignored", f"does not read factor = {factor:g}"))
    if not reads_share:
        causes.append(Problem("share-ignored", f"does not read the block's partial_rotary_factor = {share:g}"))
    return static(inv_freq, causes=tuple(causes))


def unknown(view: View) -> Table:
    """Refuses a type that the runtime has no code for.

    Raises:
        CannotLoadError: Always.
    """
    raise CannotLoadError(f"stops: no rope_type {view.rope_type!r}", "unknown-rope-type")


def _geometry(view: View, length: int) -> RopeGeometry:
    return RopeGeometry(view.rotary_dim, view.theta, int(length))
