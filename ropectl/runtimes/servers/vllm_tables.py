"""Rotary tables of vLLM's versions, by type and by model class.

Run and read: 0.9.2, 0.13.0, 0.29.0 and 0.32.0 (``model_executor/layers/rotary_embedding``, ``model_executor/models``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ropectl.records import Problem
from ropectl.rope.frequencies import base_inv_freq
from ropectl.runtimes import tables
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.servers.shared import (
    DEEPSEEK,
    deepseek_yarn,
    float_linear,
    mscale_attention,
    refuse_interleaved,
    stretched,
)
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View

#: Families whose class says that pairs are neighbours only after it made its rotary class, which then does not refuse longrope.
PAIRED_LATE = ("ernie4_5",)


@dataclass(frozen=True)
class VllmRules:
    """The rules by which a version reads a config.

    Attributes:
        version: As shown.
        view: The dialect of config it loads.
        absolute: Whether yarn reads ``attention_factor`` and the ratio of ``mscale`` and ``mscale_all_dim``; before, it
            multiplied by ``attn_factor``.
        reads_truncate: Whether yarn reads ``truncate``.
        yarn_from_original: Whether the length of yarn is the original one times the factor, and not the declared one.
        dynamic_stretched: Whether dynamic stretches its base as for ``max_position_embeddings`` * factor tokens.
        longrope_default: Whether longrope serves the top-level original length unless asked for more.
        has_dual_chunk: Whether it has an engine for attention by chunks.
        unscaled: Model types whose class hands no scaling to the rotary one.
    """

    version: str
    view: Callable[[CheckpointFacts], View]
    absolute: bool = False
    reads_truncate: bool = True
    yarn_from_original: bool = True
    dynamic_stretched: bool = False
    longrope_default: bool = True
    has_dual_chunk: bool = False
    unscaled: tuple[str, ...] = ()


def _yarn(view: View, rules: VllmRules) -> Table:
    factor = view.required("factor")
    attention = tables.yarn_attention(
        view.block, factor, absolute=rules.absolute, mscales=rules.absolute, multiplier=not rules.absolute
    )
    truncate = view.block.get("truncate", True) if rules.reads_truncate else True
    return tables.yarn(view, view.required(ORIGINAL), factor, attention, truncate)


def _dynamic(view: View, rules: VllmRules) -> Table:
    if "alpha" in view.block:
        return tables.ntk_static(view, view.required("alpha"))
    factor = view.required("factor")
    if rules.dynamic_stretched:
        return stretched(view, factor)
    trained = view.block.get("max_trained_positions", view.max_positions)
    inner = factor * view.max_positions / trained - (factor - 1)
    text = "one table for every length" if inner != 1 else "dynamic computes unscaled RoPE at every length"
    cause = Problem("dynamic-no-op" if inner == 1 else "static-per-server", text)
    return Table(tables.ntk_static(view, inner).frequencies, causes=(cause,))


def ntk_fixed(view: View) -> Table:
    """Returns NTK-fixed, or NTK-mixed with ``mixed_b`` (Su Jianlin, kexue.fm/archives/9706)."""
    factor, mixed, pairs = view.required("factor"), view.block.get("mixed_b"), view.rotary_dim // 2
    trained = base_inv_freq(view.rotary_dim, view.theta)
    if mixed is None:
        return tables.static([th / factor ** (2 * (i + 1) / view.rotary_dim) for i, th in enumerate(trained)])
    slope = math.log(factor) / pairs**mixed
    return tables.static([th / math.exp(slope * (i + 1) ** mixed) for i, th in enumerate(trained)])


_TYPES: Mapping[str | None, Callable[[View, VllmRules], Table]] = {
    "default": lambda view, rules: tables.default(view),
    "linear": lambda view, rules: float_linear(view),
    "dynamic": _dynamic,
    "ntk": lambda view, rules: ntk_fixed(view),
    "llama3": lambda view, rules: tables.llama3(view),
    "yarn": _yarn,
    "proportional": lambda view, rules: tables.proportional(view, reads_factor=False),
}

#: What the class of gpt-oss hands on of the block; it takes every block for a yarn one.
_GPT_OSS_KEYS = ("factor", ORIGINAL, "beta_fast", "beta_slow")


def _gpt_oss(view: View) -> Table:
    for key in _GPT_OSS_KEYS:
        if key not in view.block:
            raise CannotLoadError(f"stops with KeyError: {key}, which every gpt-oss file has")
    ignored = dict.fromkeys(("attention_factor", "attn_factor", "mscale", "mscale_all_dim"))
    attention, _ = tables.yarn_attention({**view.block, **ignored}, view.required("factor"))
    given = view.block.get("attention_factor")
    causes = (
        () if given is None else (Problem("attention-factor-ignored", f"does not read attention_factor = {given:g}"),)
    )
    truncate = view.block.get("truncate", True)
    return tables.yarn(view, view.required(ORIGINAL), view.required("factor"), (attention, causes), truncate)


def served_length(view: View, rules: VllmRules, derived: int) -> int:
    """Returns what is served without asking for a length [tokens]: longrope's top-level original, else the derived one."""
    if view.rope_type == "longrope" and rules.longrope_default:
        return min(int(view.outer_original or derived), derived)
    return derived


def class_table(view: View, rules: VllmRules, facts: CheckpointFacts, derived: int) -> Table:
    """Returns what vLLM's own model class computes.

    Args:
        view: The config as the version reads it.
        rules: The version.
        facts: The checkpoint.
        derived: The longest length that may be asked for [tokens].

    Raises:
        CannotLoadError: If it stops.
    """
    old, new = view.block.get("type"), view.block.get("rope_type")
    if (
        old is not None
        and new is not None
        and old != new
        and (old, new) not in (("su", "longrope"), ("mrope", "default"))
    ):
        raise CannotLoadError(f"stops: type is {old!r}, rope_type is {new!r}")
    if view.model_type in rules.unscaled:
        cause = Problem("factor-ignored", f"its class of {view.model_type} reads no scaling: unscaled")
        return replace(tables.default(view), causes=(cause,))
    if view.model_type == "gpt_oss":
        return _gpt_oss(view)
    table = _by_type(view, rules, facts, derived)
    beta, length = (
        view.block.get("llama_4_scaling_beta"),
        view.block.get(ORIGINAL, facts.geometry.original_max_position_embeddings),
    )
    if beta and facts.target_length > length:
        text = f"does not scale queries past {length} tokens as llama_4_scaling_beta = {beta:g} says"
        return replace(table, problems=(*table.problems, Problem("query-scale-ignored", text)))
    return table


def _by_type(view: View, rules: VllmRules, facts: CheckpointFacts, derived: int) -> Table:
    if view.model_type in DEEPSEEK and view.rope_type != "default":
        return deepseek_yarn(view, multiplier=not rules.absolute)
    if view.rope_type == "longrope" and view.model_type in PAIRED_LATE:
        table = _longrope(view, rules, facts, derived)
        red = Problem("pairs-misread", "longrope turns half-split pairs, where the model has neighbours")
        return replace(table, problems=(*table.problems, red))
    refuse_interleaved(view)
    if view.rope_type == "longrope":
        return _longrope(view, rules, facts, derived)
    handler = _TYPES.get(view.rope_type)
    return handler(view, rules) if handler else tables.unknown(view)


def _longrope(view: View, rules: VllmRules, facts: CheckpointFacts, derived: int) -> Table:
    original, served = view.required(ORIGINAL), min(facts.target_length, derived)
    factors, causes = mscale_attention(view)
    text = f"longrope is decided once per server: serving {served} tokens, short prompts are rotated as long ones"
    is_long = served > original
    lists_differ = list(view.block.get("short_factor") or ()) != list(view.block.get("long_factor") or ())
    problems = (Problem("static-per-server", text),) if is_long and lists_differ else ()
    return tables.longrope(view, lambda seq_len: is_long, factors, problems, causes, problems)


def transformers_table(view: View) -> Table:
    """Returns what transformers computes where vLLM runs its model class, for lack of one of its own.

    Raises:
        CannotLoadError: If there is no such type.
    """
    block = view.block
    if view.rope_type == "yarn":
        factor = view.required("factor")
        return tables.yarn(
            view, view.required(ORIGINAL), factor, tables.yarn_attention(block, factor), block.get("truncate", True)
        )
    if view.rope_type == "longrope":
        original = view.required(ORIGINAL)
        factor = block.get("factor") or view.max_positions / original
        given = block.get("attention_factor")
        attention = tables.su_attention(factor, original) if given is None else float(given)
        return tables.longrope(view, lambda seq_len: seq_len > original, attention)
    if view.rope_type == "dynamic" and "alpha" in block:
        return tables.ntk_static(view, view.required("alpha"))
    return _TRANSFORMERS_TYPES.get(view.rope_type, tables.unknown)(view)


_TRANSFORMERS_TYPES: Mapping[str | None, Callable[[View], Table]] = {
    "default": tables.default,
    "linear": tables.linear,
    "dynamic": tables.dynamic,
    "llama3": tables.llama3,
    "proportional": lambda view: tables.proportional(view, reads_factor=True),
}
