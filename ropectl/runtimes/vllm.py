"""vLLM: reads the config as transformers 5 reads it, with rotary classes and length rules of its own.

Read and run: 0.32.0 (``rotary_embedding/``, ``config/model.py:_get_and_verify_max_len``; transformers 5.19). The
tokenizer's ``model_max_length`` caps pooling models with absolute positions only. Read: 0.9
(``rotary_embedding.py``, ``config.py``), which takes the dialect of transformers 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ropectl.records import NextStep, Problem, RuntimeReading
from ropectl.rope.frequencies import base_inv_freq
from ropectl.runtimes import tables
from ropectl.runtimes.evidence import evidence_of
from ropectl.runtimes.judge import length_lines, read
from ropectl.runtimes.launch import server_step
from ropectl.runtimes.runtime import CheckpointFacts, Probe, Runtime
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, v4_view, v5_view

#: Families whose pairs are neighbours; the class for longrope serves the other kind only.
INTERLEAVED = ("cohere", "cohere2", "helium", "ernie4_5", "ernie4_5_moe", "glm", "glm4", "longcat_flash", "llama4_text")


@dataclass(frozen=True)
class VllmRules:
    """The rules by which a version reads a config.

    Attributes:
        version: As shown.
        view: The dialect of config it loads.
        absolute: Whether yarn reads ``attention_factor``, ``mscale`` and ``truncate``; before, it multiplied
            by ``attn_factor``.
        unmultiplied: Types whose ``max_position_embeddings`` is taken to be scaled already.
        yarn_from_original: Whether the length of yarn is the original one times the factor.
        dynamic_table: Whether dynamic stretches its base, as for ``max_position_embeddings`` * factor tokens.
        longrope_default: Whether longrope serves the top-level original length unless asked for more.
    """

    version: str
    view: Callable[[CheckpointFacts], View]
    absolute: bool
    unmultiplied: tuple[str, ...]
    yarn_from_original: bool
    dynamic_table: bool
    longrope_default: bool


def _old_view(facts: CheckpointFacts) -> View:
    """Returns what transformers 4 reads, but the top-level original length beats the block's (``models/llama.py``)."""
    view = v4_view(facts)
    if not view.block or not view.outer_original:
        return view
    return replace(view, block={**view.block, ORIGINAL: view.outer_original})


OLD = VllmRules("0.9", _old_view, False, ("su", "longrope", "llama3"), True, True, False)
NEW = VllmRules("0.32", v5_view, True, ("su", "longrope", "llama3", "yarn"), False, False, True)


def derived_length(view: View, rules: VllmRules) -> int:
    """Returns the longest length that the server accepts, ``derived_max_model_len`` [tokens]."""
    if view.rope_type in rules.unmultiplied:
        return view.max_positions
    factor = view.block.get("factor", 1.0)
    from_original = view.rope_type == "yarn" and rules.yarn_from_original
    return int((view.required(ORIGINAL) if from_original else view.max_positions) * (1.0 if factor is None else factor))


def table_rows(view: View, rules: VllmRules) -> int:
    """Returns the rows of the table of cos and sin: positions past them read out of bounds [tokens]."""
    factor = view.block.get("factor")
    if view.rope_type == "yarn":
        return math.ceil(float(view.required("factor")) * int(view.required(ORIGINAL)))
    if view.rope_type == "linear" or (view.rope_type == "dynamic" and rules.dynamic_table):
        return int(view.max_positions * (factor or 1.0))
    return view.max_positions


def _yarn(view: View, rules: VllmRules) -> Table:
    factor = view.required("factor")
    attention = tables.yarn_attention(
        view.block, factor, absolute=rules.absolute, mscales=rules.absolute, multiplier=not rules.absolute
    )
    truncate = view.block.get("truncate", True) if rules.absolute else True
    return tables.yarn(view, view.required(ORIGINAL), factor, attention, truncate)


def _dynamic(view: View, rules: VllmRules) -> Table:
    if "alpha" in view.block and not rules.dynamic_table:
        return tables.ntk_static(view, view.required("alpha"))
    factor = view.required("factor")
    if rules.dynamic_table:
        return stretched(view, factor)
    trained = view.block.get("max_trained_positions", view.max_positions)
    inner = factor * view.max_positions / trained - (factor - 1)
    text = "one table for every length" if inner != 1 else "dynamic computes unscaled RoPE at every length"
    cause = Problem("dynamic-no-op" if inner == 1 else "static-per-server", text)
    return tables.Table(tables.ntk_static(view, inner).frequencies, causes=(cause,))


def stretched(view: View, factor: float) -> Table:
    """Returns dynamic NTK as one table, for ``max_position_embeddings`` * factor tokens: the scale is f^2 - f + 1."""
    scale = factor * factor - factor + 1
    text = f"one table for every length, NTK-aware with scale {scale:g}"
    return tables.Table(tables.ntk_static(view, scale).frequencies, causes=(Problem("static-per-server", text),))


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


def ntk_fixed(view: View) -> Table:
    """Returns NTK-fixed, or NTK-mixed with ``mixed_b`` (Su Jianlin, kexue.fm/archives/9706)."""
    factor, mixed, pairs = view.required("factor"), view.block.get("mixed_b"), view.rotary_dim // 2
    trained = base_inv_freq(view.rotary_dim, view.theta)
    if mixed is None:
        return tables.static([th / factor ** (2 * (i + 1) / view.rotary_dim) for i, th in enumerate(trained)])
    slope = math.log(factor) / pairs**mixed
    return tables.static([th / math.exp(slope * (i + 1) ** mixed) for i, th in enumerate(trained)])


def float_linear(view: View) -> Table:
    """Returns linear scaling, whose factor has to be a float: anything else is taken for a list of factors."""
    if not isinstance(view.required("factor"), float):
        text = f"stops with TypeError: factor = {view.block['factor']} has to be written {view.block['factor']}.0"
        raise CannotLoadError(text, "integer-factor")
    return tables.linear(view)


_TYPES: Mapping[str | None, Callable[[View, VllmRules], Table]] = {
    "default": lambda view, rules: tables.default(view),
    "linear": lambda view, rules: float_linear(view),
    "dynamic": _dynamic,
    "ntk": lambda view, rules: ntk_fixed(view),
    "llama3": lambda view, rules: tables.llama3(view),
    "yarn": _yarn,
    "proportional": lambda view, rules: tables.proportional(view, reads_factor=False),
}


class Vllm(Runtime):
    """The vLLM server."""

    name = "vllm"
    order = 20
    probe = Probe("vllm_logprobs.py")

    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        return [self._read(facts, OLD), self._read(facts, NEW)]

    def _read(self, facts: CheckpointFacts, rules: VllmRules) -> RuntimeReading:
        def serve(view: View) -> tuple[int | None, list[Problem]]:
            limit, rows = derived_length(view, rules), table_rows(view, rules)
            usable = limit
            if view.rope_type == "longrope" and rules.longrope_default:
                usable = min(int(view.outer_original or limit), limit)
            more = " unless --max-model-len asks for more" if usable < facts.target_length <= limit else ""
            problems = length_lines(usable, facts.target_length, more)
            if rows < usable:
                text = f"its table has {rows} rows for {usable} tokens: later positions read out of bounds"
                problems.append(Problem("position-table-short", text))
            return usable, problems

        def table(view: View) -> Table:
            return self._table(view, rules, facts)

        evidence = evidence_of(self.name, rules.version, facts)
        return read(self.name, rules.version, facts, rules.view, table, serve, evidence)

    def _table(self, view: View, rules: VllmRules, facts: CheckpointFacts) -> Table:
        old, new = view.block.get("type"), view.block.get("rope_type")
        if old is not None and new is not None and old != new and (old, new) != ("su", "longrope"):
            raise CannotLoadError(f"stops: type is {old!r}, rope_type is {new!r}")
        if view.rope_type == "longrope":
            return self._longrope(view, rules, facts)
        handler = _TYPES.get(view.rope_type)
        return handler(view, rules) if handler else tables.unknown(view)

    def _longrope(self, view: View, rules: VllmRules, facts: CheckpointFacts) -> Table:
        if facts.model_type in INTERLEAVED:
            raise CannotLoadError("stops: longrope serves half-split pairs only")
        original, served = view.required(ORIGINAL), min(facts.target_length, derived_length(view, rules))
        factors, causes = mscale_attention(view)
        text = f"longrope is decided once per server: serving {served} tokens, short prompts are rotated as long ones"
        is_long = served > original
        lists_differ = list(view.block.get("short_factor") or ()) != list(view.block.get("long_factor") or ())
        problems = (Problem("static-per-server", text),) if is_long and lists_differ else ()
        if not rules.longrope_default:
            return tables.longrope(view, by_batch(original), factors, (), causes)
        return tables.longrope(view, lambda seq_len: is_long, factors, problems, causes, problems)

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        def reader(changed: CheckpointFacts) -> RuntimeReading:
            return self._read(changed, NEW)

        def reaches(changed: CheckpointFacts) -> bool:
            view = v5_view(changed)
            return min(derived_length(view, NEW), table_rows(view, NEW)) >= facts.target_length

        command = f"vllm serve {facts.shell_location} --max-model-len {facts.target_length}"
        return server_step(self.name, facts, command, "--hf-overrides", reader, reaches, merges=False)
