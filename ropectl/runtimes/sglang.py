"""sglang: reads the config as transformers 5 reads it, with rotary classes and length rules of its own.

Read: 0.5.23 (``layers/rotary_embedding/factory.py``, ``yarn.py``, ``rope_variant.py``,
``utils/hf_transformers/common.py:get_context_length``, ``models/llama.py``; transformers 5.19).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ropectl.records import NextStep, Problem, RuntimeReading
from ropectl.runtimes import tables
from ropectl.runtimes.evidence import evidence_of
from ropectl.runtimes.judge import length_lines, read
from ropectl.runtimes.launch import server_step
from ropectl.runtimes.runtime import CheckpointFacts, Runtime
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, v5_view
from ropectl.runtimes.vllm import INTERLEAVED, by_batch, float_linear, mscale_attention, stretched

VERSION = "0.5.23"

#: Families whose class passes on the share of pairs that turn (``models/gemma4_causal.py``).
READS_SHARE = ("gemma4", "gemma4_text")


def context_length(view: View) -> int:
    """Returns the longest length that the server accepts [tokens]: the factor multiplies unless an original is named."""
    if ORIGINAL in view.block or view.rope_type == "llama3":
        return view.max_positions
    factor = view.block.get("factor", 1)
    if factor is None:
        raise CannotLoadError("stops: factor null")
    return int(factor * view.max_positions)


def _yarn(view: View) -> Table:
    factor = view.required("factor")
    attention = tables.yarn_attention(view.block, factor, absolute=False, multiplier=True, null_only=True)
    return tables.yarn(view, view.required(ORIGINAL), factor, attention, view.block.get("truncate", True))


def _dynamic(view: View) -> Table:
    if "alpha" in view.block:
        return tables.ntk_static(view, view.required("alpha"))
    return stretched(view, view.required("factor"))


def _longrope(view: View) -> Table:
    original = view.required(ORIGINAL)
    factors, causes = mscale_attention(view)
    return tables.longrope(view, by_batch(original), factors, (), causes)


_TYPES: Mapping[str | None, Callable[[View], Table]] = {
    "default": tables.default,
    "linear": float_linear,
    "dynamic": _dynamic,
    "llama3": tables.llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "proportional": lambda view: tables.proportional(view, False, reads_share=view.model_type in READS_SHARE),
}


class Sglang(Runtime):
    """The sglang server."""

    name = "sglang"
    order = 30

    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        return [self._read(facts)]

    def _read(self, facts: CheckpointFacts) -> RuntimeReading:
        def table(view: View) -> Table:
            if view.rope_type == "longrope" and facts.model_type in INTERLEAVED:
                raise CannotLoadError("stops: longrope serves half-split pairs only")
            return _TYPES.get(view.rope_type, tables.unknown)(view)

        def serve(view: View) -> tuple[int | None, list[Problem]]:
            usable = context_length(view)
            return usable, length_lines(usable, facts.target_length)

        return read(self.name, VERSION, facts, v5_view, table, serve, evidence_of(self.name, VERSION, facts))

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        def reaches(changed: CheckpointFacts) -> bool:
            return context_length(v5_view(changed)) >= facts.target_length

        command = (
            f"python -m sglang.launch_server --model-path {facts.shell_location} --context-length {facts.target_length}"
        )
        return server_step(self.name, facts, command, "--json-model-override-args", self._read, reaches, merges=True)
