"""Rotary tables that vLLM and sglang compute alike."""

from __future__ import annotations

from collections.abc import Callable

from ropectl.records import Problem
from ropectl.runtimes import tables
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View

#: Families whose pairs are neighbours; the class for longrope serves the other kind only.
INTERLEAVED = (
    *("cohere", "cohere2", "cohere2_moe", "helium", "ernie4_5", "ernie4_5_moe", "glm", "glm4", "longcat_flash"),
)
#: Families of the DeepSeek class, which has a yarn of its own.
DEEPSEEK = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm4_moe_lite", "glm_moe_dsa", "axk1")


def refuse_interleaved(view: View) -> None:
    """Refuses longrope where pairs are neighbours.

    Raises:
        CannotLoadError: If they are.
    """
    if view.rope_type == "longrope" and view.model_type in INTERLEAVED:
        raise CannotLoadError("stops: longrope serves half-split pairs only")


def float_linear(view: View) -> Table:
    """Returns linear scaling, whose factor has to be a float: anything else is taken for a list of factors."""
    if not isinstance(view.required("factor"), float):
        text = f"stops with TypeError: factor = {view.block['factor']} has to be written {view.block['factor']}.0"
        raise CannotLoadError(text, "integer-factor")
    return tables.linear(view)


def stretched(view: View, factor: float) -> Table:
    """Returns dynamic NTK as one table, for ``max_position_embeddings`` * factor tokens: the scale is f^2 - f + 1."""
    scale = factor * factor - factor + 1
    text = f"one table for every length, NTK-aware with scale {scale:g}"
    return Table(tables.ntk_static(view, scale).frequencies, causes=(Problem("static-per-server", text),))


def by_batch(original: int) -> Callable[[int], bool]:
    """Returns longrope's choice by the longest sequence of a batch; position L itself still takes the short list."""
    return lambda seq_len: seq_len > original + 1


def mscale_attention(view: View) -> tuple[tuple[float, float], tuple[Problem, ...]]:
    """Returns A of longrope's short and long list, and the keys that are ignored."""
    derived = tables.su_attention(view.max_positions / view.required(ORIGINAL), view.required(ORIGINAL))
    factors = [view.block.get(key) for key in ("short_mscale", "long_mscale")]
    short, long = (derived if factor is None else float(factor) for factor in factors)
    causes: tuple[Problem, ...] = ()
    if view.block.get("attention_factor") is not None and None in factors:
        text = f"does not read attention_factor = {view.block['attention_factor']:g} of longrope"
        causes = (Problem("attention-factor-ignored", text),)
    return (short, long), causes


def deepseek_yarn(view: View, multiplier: bool = False, guesses_length: bool = False) -> Table:
    """Returns the yarn of DeepSeek's class, which takes every block that scales for one.

    ``mscale`` is 1 and ``mscale_all_dim`` 0 where the block does not say.

    Args:
        view: The config as read.
        multiplier: Whether ``attn_factor`` multiplies A.
        guesses_length: Whether ``max_position_embeddings`` stands in for a missing original length.
    """
    factor, block = view.required("factor"), view.block
    length = view.block.get(ORIGINAL, view.max_positions) if guesses_length else view.required(ORIGINAL)
    other = view.rope_type != "yarn"
    misread = (Problem("type-ignored", f"its DeepSeek class takes {view.rope_type} for yarn"),) if other else ()
    pair = {
        "mscale": 1.0,
        "mscale_all_dim": 0.0,
        **{key: block[key] for key in ("mscale", "mscale_all_dim") if key in block},
    }
    attention = tables.yarn_attention({**block, **pair}, factor, absolute=False, multiplier=multiplier, null_only=True)
    return tables.yarn(view, length, factor, attention, truncate=True, causes=misread)
