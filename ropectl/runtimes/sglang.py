"""sglang: reads the config as transformers 5 reads it, with rotary classes and length rules of its own.

0.5.23: its model classes, rotary classes and ``get_context_length`` were run without a GPU, with small configs of every family that
can be made so (``runs/sglang.json``). It was not run as a server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ropectl.hf.config.families import CHUNKED_POSITIONS
from ropectl.records import NextStep, Problem, ReadingEvidence, RuntimeReading
from ropectl.runtimes import tables
from ropectl.runtimes.evidence import evidence_of
from ropectl.runtimes.judge import length_lines, read
from ropectl.runtimes.launch import server_step
from ropectl.runtimes.runtime import CheckpointFacts, Runtime
from ropectl.runtimes.servers.shared import (
    DEEPSEEK,
    by_batch,
    deepseek_yarn,
    float_linear,
    mscale_attention,
    refuse_interleaved,
    stretched,
)
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, v5_view

VERSION = "0.5.23"

#: Families whose class passes on the share of pairs that turn (``models/gemma4_causal.py``).
READS_SHARE = ("gemma4", "gemma4_text")


#: Keys that say the length, the first that is there counts; ``max_position_embeddings`` comes after them.
_LENGTH_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length")
#: Families whose class hands no scaling to the rotary one.
UNSCALED = (
    *("gemma", "gemma2", "gemma3_text", "granitemoe", "granitemoeshared", "hy_v3", "mixtral", "olmo", "persimmon"),
    *("phi", "stablelm", "starcoder2"),
)
#: Families whose class is DeepSeek's, or made like it.
LIKE_DEEPSEEK = (*DEEPSEEK, "hy_v4", "longcat_flash")


def context_length(view: View, section: Mapping[str, object], has_layer_blocks: bool) -> int:
    """Returns the longest length that the server accepts [tokens]: the factor multiplies unless an original is named.

    Args:
        view: The config as read.
        section: The text part of the config.
        has_layer_blocks: Whether each layer type has a block; the factors inside are not looked for.
    """
    given = (section.get(key) for key in _LENGTH_KEYS)
    length = next((value for value in given if isinstance(value, int)), view.max_positions)
    if ORIGINAL in view.block or view.rope_type == "llama3" or has_layer_blocks:
        return length
    factor = view.block.get("factor", 1)
    if factor is None:
        raise CannotLoadError("stops: factor null")
    return int(factor * length)


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
            if view.model_type in UNSCALED:
                cause = Problem("factor-ignored", f"its class of {view.model_type} reads no scaling: unscaled")
                return replace(tables.default(view), causes=(cause,))
            if view.model_type in LIKE_DEEPSEEK and view.rope_type != "default":
                return deepseek_yarn(view, multiplier=True, guesses_length=True)
            refuse_interleaved(view)
            return _TYPES.get(view.rope_type, tables.unknown)(view)

        def serve(view: View) -> tuple[int | None, list[Problem]]:
            usable = context_length(view, facts.section, facts.layer_type is not None)
            return usable, length_lines(usable, facts.target_length)

        evidence = evidence_of(self.name, VERSION, facts)
        if facts.section.get(CHUNKED_POSITIONS):
            evidence = ReadingEvidence("unknown", source=f"not known with {CHUNKED_POSITIONS}")
        return read(self.name, VERSION, facts, v5_view, table, serve, evidence)

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        def reaches(changed: CheckpointFacts) -> bool:
            return (
                context_length(v5_view(changed), changed.section, changed.layer_type is not None) >= facts.target_length
            )

        command = (
            f"python -m sglang.launch_server --model-path {facts.shell_location} --context-length {facts.target_length}"
        )
        return server_step(self.name, facts, command, "--json-model-override-args", self._read, reaches, merges=True)
