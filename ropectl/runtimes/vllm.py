"""vLLM: how its versions read a config, how many tokens they serve, and how one is started.

Each row is a release that was run on small models of every family that it loads (``runs/vllm.json``); its rules are in
``servers/vllm_tables.py``. The tokenizer's ``model_max_length`` caps pooling models with absolute positions only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ropectl.hf.config.families import CHUNKED_POSITIONS
from ropectl.records import NextStep, Problem, ReadingEvidence, RuntimeReading
from ropectl.runtimes.evidence import evidence_of, releases
from ropectl.runtimes.judge import length_lines, read
from ropectl.runtimes.launch import server_step
from ropectl.runtimes.runtime import CheckpointFacts, Probe, Runtime
from ropectl.runtimes.servers.vllm_tables import VllmRules, class_table, served_length, transformers_table
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, v4_view, v5_block, v5_view

#: Keys of a config that limit the length; the smallest counts, but ``model_max_length`` replaces them all.
_LENGTH_KEYS = ("n_positions", "max_seq_len", "seq_length", "max_sequence_length", "max_seq_length", "seq_len")
#: Model types whose config classes in transformers 4 take certain keys only.
_OLD_BLOCKS = {"phi3": ("type", "short_factor", "long_factor"), "olmo2": ("type", "factor")}
#: Types whose ``max_position_embeddings`` is taken to be scaled already.
_SCALED_ALREADY = ("su", "longrope", "llama3")


def _first_view(facts: CheckpointFacts) -> View:
    """Returns what transformers 4 reads, but the top-level original length beats the block's (``models/llama.py``)."""
    _check_old_block(facts)
    return _with_outer(v4_view(facts))


def _middle_view(facts: CheckpointFacts) -> View:
    """Returns what 0.13 makes of transformers 4: ``rope_scaling``, else ``rope_parameters``, with the top-level base."""
    _check_old_block(facts)
    section = facts.section
    view = v4_view(facts)
    if section.get("rope_scaling"):
        return _with_outer(view)
    block = v5_block(facts)
    causes = tuple(cause for cause in view.causes if cause.code != "factor-ignored")
    rope_type = block.get("rope_type", block.get("type", "default"))
    return _with_outer(replace(view, block=block, rope_type=rope_type, causes=causes))


def _check_old_block(facts: CheckpointFacts) -> None:
    """Refuses what some config classes of transformers 4 refuse: a block of other keys than theirs."""
    block, keys = facts.section.get("rope_scaling"), _OLD_BLOCKS.get(facts.model_type)
    if block and keys and set(block) != set(keys):
        raise CannotLoadError(f"stops: the config class takes a block of {', '.join(keys)} and no other key")


def _with_outer(view: View) -> View:
    if not view.block or not view.outer_original:
        return view
    return replace(view, block={**view.block, ORIGINAL: view.outer_original})


FIRST = VllmRules(
    "0.9",
    _first_view,
    reads_truncate=False,
    dynamic_stretched=True,
    longrope_default=False,
    has_dual_chunk=True,
    unscaled=(
        *("gemma", "gemma2", "gpt_neox", "granitemoe", "mixtral", "olmo", "olmo2", "persimmon", "phi", "stablelm"),
        "starcoder2",
    ),
)
MIDDLE = VllmRules("0.13", _middle_view, dynamic_stretched=True)
LATER = VllmRules("0.29", v5_view)
NEW = VllmRules("0.32", v5_view, absolute=True, yarn_from_original=False)
VERSIONS = (FIRST, MIDDLE, LATER, NEW)


def derived_length(view: View, rules: VllmRules, section: Mapping[str, object]) -> int:
    """Returns the longest length that may be asked for, ``derived_max_model_len`` [tokens].

    Args:
        view: The config as the version reads it.
        rules: The version.
        section: The text part of the config.
    """
    given = [section.get(key) for key in _LENGTH_KEYS]
    length = min([view.max_positions, *(value for value in given if isinstance(value, int))])
    command_r = section.get("model_max_length")
    if isinstance(command_r, int) and command_r:
        length = command_r
    if view.rope_type in _SCALED_ALREADY or "gemma3" in view.model_type:  # Gemma 3 declares what it reaches scaled
        return length
    if view.rope_type == "yarn" and not rules.yarn_from_original:
        return length
    factor = view.block.get("factor", 1.0)
    from_original = view.rope_type == "yarn"
    return int((view.required(ORIGINAL) if from_original else length) * (1.0 if factor is None else factor))


def table_rows(view: View, rules: VllmRules, section: Mapping[str, object]) -> int:
    """Returns the rows of the table of cos and sin: positions past them read out of bounds [tokens].

    Args:
        view: The config as the version reads it.
        rules: The version.
        section: The text part of the config.
    """
    factor, positions = view.block.get("factor"), view.max_positions
    if view.model_type in rules.unscaled:
        return positions
    if view.model_type in ("cohere", "cohere2") and isinstance(section.get("model_max_length"), int):
        positions = int(str(section["model_max_length"]))  # only this class reads it
    if view.rope_type == "yarn" or view.model_type == "gpt_oss":
        return math.ceil(float(view.required("factor")) * int(view.required(ORIGINAL)))
    if view.rope_type == "linear" or (view.rope_type == "dynamic" and rules.dynamic_stretched and factor):
        return int(positions * (factor or 1.0))
    return positions


def runs_transformers_class(rules: VllmRules, model_type: str) -> bool:
    """Returns whether a version was seen to run a family through the model class of transformers."""
    release = releases("vllm").get(rules.version)
    return release is not None and release.classes.get(model_type, "").startswith("Transformers")


def has_type(rules: VllmRules, model_type: str) -> bool:
    """Returns whether a version, with a transformers release of its time, reads a model type that the newest one reads."""
    types = [
        release.model_types if release else None for release in map(releases("vllm").get, (rules.version, NEW.version))
    ]
    own, newest = types
    return own is None or newest is None or model_type in own or model_type not in newest


def _evidence(rules: VllmRules, facts: CheckpointFacts) -> ReadingEvidence:
    release = releases("vllm").get(rules.version)
    if "auto_map" in facts.config and not has_type(rules, facts.model_type):
        return ReadingEvidence("unknown", source="it may be read by the code that comes with it")
    if release is not None and not has_type(rules, facts.model_type):
        return ReadingEvidence("run", release.version, release.date, "the model types that it reads")
    if release is not None and facts.section.get(CHUNKED_POSITIONS):
        return ReadingEvidence("read", release.version, release.date, "its source")
    return evidence_of("vllm", rules.version, facts)


class Vllm(Runtime):
    """The vLLM server."""

    name = "vllm"
    order = 20
    probe = Probe("vllm_logprobs.py")

    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        return [self._read(facts, rules) for rules in VERSIONS]

    def _read(self, facts: CheckpointFacts, rules: VllmRules) -> RuntimeReading:
        borrowed = runs_transformers_class(rules, facts.model_type)

        def serve(view: View) -> tuple[int | None, list[Problem]]:
            limit = derived_length(view, rules, facts.section)
            usable = served_length(view, rules, limit)
            more = " unless --max-model-len asks for more" if usable < facts.target_length <= limit else ""
            problems = length_lines(usable, facts.target_length, more)
            rows = limit if borrowed else table_rows(view, rules, facts.section)
            if rows < usable:
                text = f"its table has {rows} rows for {usable} tokens: later positions read out of bounds"
                problems.append(Problem("position-table-short", text))
            return usable, problems

        def view_of(checkpoint: CheckpointFacts) -> View:
            if not has_type(rules, checkpoint.model_type):
                raise CannotLoadError(f"no such model type: {checkpoint.model_type!r}", "no-such-model-type")
            return rules.view(checkpoint)

        def table(view: View) -> Table:
            if facts.section.get(CHUNKED_POSITIONS) and not rules.has_dual_chunk:
                text = f"stops: {CHUNKED_POSITIONS} belongs to an engine that these versions do not have"
                raise CannotLoadError(text, "dual-chunk")
            if borrowed:
                return transformers_table(view)
            return class_table(view, rules, facts, derived_length(view, rules, facts.section))

        return read(self.name, rules.version, facts, view_of, table, serve, _evidence(rules, facts))

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        def reader(changed: CheckpointFacts) -> RuntimeReading:
            return self._read(changed, NEW)

        def reaches(changed: CheckpointFacts) -> bool:
            view, section = v5_view(changed), changed.section
            return min(derived_length(view, NEW, section), table_rows(view, NEW, section)) >= facts.target_length

        command = f"vllm serve {facts.shell_location} --max-model-len {facts.target_length}"
        return server_step(self.name, facts, command, "--hf-overrides", reader, reaches, merges=False)
