"""transformers: the rules by which its versions read a config, as data.

Read, and compared with the real functions by the tests: 4.44.2, 4.48.3, 4.51.3, 4.57.6, 5.0.0 and 5.24.0
(``modeling_rope_utils.py``, ``models/llama``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ropectl.records import NextStep, Problem, RuntimeReading
from ropectl.runtimes import tables
from ropectl.runtimes.evidence import evidence_of
from ropectl.runtimes.judge import read
from ropectl.runtimes.runtime import CheckpointFacts, Runtime
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, v4_view, v5_view

#: Families whose config leaves ``head_dim`` null: their yarn, dynamic and longrope multiply it.
NULL_HEAD_DIM = ("mixtral", "ministral", "minimax", "hunyuan_v1_dense")
#: Families that brought the switch of longrope before LLaMA had it.
OWN_LONGROPE = ("phi3", "phimoe")
_MULTIPLY_HEAD_DIM = ("yarn", "dynamic", "longrope")


@dataclass(frozen=True)
class TransformersRules:
    """The rules by which a version reads a config.

    Attributes:
        version: As shown.
        view: The dialect.
        yarn_reads_original: Whether the ramp of yarn is built on the original length, not on
            ``max_position_embeddings``.
        yarn_overwrites_factor: Whether ``max_position_embeddings`` / original replaces ``factor``.
        yarn_reads_mscale: Whether it knows ``mscale`` and ``mscale_all_dim``.
        yarn_reads_truncate: Whether it knows ``truncate``.
        longrope: ``original``: switches where the block says; ``outer``: where the top level says, else at
            ``max_position_embeddings``; ``short``: never leaves ``short_factor``; ``long``: decides once.
        adds_head_dim: Whether the config classes fill in a null ``head_dim`` but for a few families.
        has_proportional: Whether it knows that type.
    """

    version: str
    view: Callable[[CheckpointFacts], View]
    yarn_reads_original: bool = True
    yarn_overwrites_factor: bool = False
    yarn_reads_mscale: bool = True
    yarn_reads_truncate: bool = True
    longrope: str = "original"
    adds_head_dim: bool = True
    has_proportional: bool = False


_OLDEST = TransformersRules(
    "4.44",
    v4_view,
    yarn_reads_original=False,
    yarn_reads_mscale=False,
    yarn_reads_truncate=False,
    longrope="long",
    adds_head_dim=False,
)
VERSIONS = (
    _OLDEST,
    replace(_OLDEST, version="4.48", longrope="short", adds_head_dim=True),
    TransformersRules("4.51", v4_view, yarn_overwrites_factor=True, yarn_reads_truncate=False, longrope="outer"),
    TransformersRules("4.57", v4_view, longrope="outer"),
    TransformersRules("5.x", v5_view, has_proportional=True),
)


def _yarn(view: View, rules: TransformersRules) -> Table:
    block, original, limit = view.block, view.block.get(ORIGINAL), view.max_positions
    factor, causes = block.get("factor"), []
    length = (original or limit) if rules.view is v4_view else view.required(ORIGINAL)
    if not rules.yarn_reads_original:
        length = limit
        if original is not None and original != limit:
            causes.append(Problem("original-length-ignored", f"builds the ramp on {limit} tokens, not on {original}"))
    if "factor" not in block:
        raise CannotLoadError("stops: yarn without factor")
    if rules.yarn_overwrites_factor and ORIGINAL in block:
        given, factor = factor, limit / view.required(ORIGINAL)
        if given != factor:
            causes.append(Problem("factor-overwritten", f"factor {factor:g} = {limit}/{original} in place of {given}"))
    if factor is None:
        if rules.view is v4_view:
            raise CannotLoadError("stops: yarn with factor null")
        factor = limit / view.required(ORIGINAL)
    truncate = block.get("truncate", True) if rules.yarn_reads_truncate else True
    if not block.get("truncate", True) and truncate:
        causes.append(Problem("truncate-ignored", "does not read truncate: rounds the ramp"))
    attention = tables.yarn_attention(block, factor, mscales=rules.yarn_reads_mscale)
    attention = (attention[0], (*causes, *attention[1])) if factor != block.get("factor") else attention
    return tables.yarn(view, length, factor, attention, truncate, tuple(causes))


def _longrope(view: View, rules: TransformersRules) -> Table:
    block, outer, limit = view.block, view.outer_original, view.max_positions
    factor, causes = block.get("factor"), []
    inner = block.get(ORIGINAL)
    if rules.longrope == "original":
        length = view.required(ORIGINAL)
        factor = limit / length if factor is None else factor
    else:
        length = outer or limit
        factor = limit / outer if outer else factor
        if outer is None and inner is not None and inner != length:
            causes.append(Problem("original-length-ignored", f"switches at {length} tokens, not at {inner}"))
    kind = "outer" if rules.longrope != "original" and view.model_type in OWN_LONGROPE else rules.longrope
    if kind == "long" and (block.get("attention_factor") is None or (not outer and factor is None)):
        raise CannotLoadError("stops: longrope without factor and attention_factor")
    attention = block.get("attention_factor")
    if attention is None:
        if factor is None:
            raise CannotLoadError("stops: longrope without factor")
        attention = tables.su_attention(factor, length)
    is_long: Callable[[int], bool] = lambda seq_len: seq_len > length  # noqa: E731
    if kind == "long":
        decided = limit > length if outer else factor is not None and factor > 1
        is_long = lambda seq_len: decided  # noqa: E731
        causes.append(Problem("static-per-model", f"takes the {'long' if decided else 'short'} list at every length"))
    if kind == "short":
        is_long = lambda seq_len: False  # noqa: E731
        causes = [Problem("static-per-model", "takes the short list at every length")]
    read_length = Problem("attention-factor-misread", f"takes factor {factor} and {length} tokens for it")
    return tables.longrope(view, is_long, float(attention), tuple(causes), (read_length,))


_TYPES: Mapping[str | None, Callable[[View, TransformersRules], Table]] = {
    "default": lambda view, rules: tables.default(view),
    "linear": lambda view, rules: tables.linear(view),
    "dynamic": lambda view, rules: tables.dynamic(view),
    "llama3": lambda view, rules: tables.llama3(view, low_first=True),
    "yarn": _yarn,
    "longrope": _longrope,
    "proportional": lambda view, rules: (
        tables.proportional(view, reads_factor=True) if rules.has_proportional else tables.unknown(view)
    ),
}


def table(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table:
    """Returns what a version computes.

    Raises:
        CannotLoadError: If it stops.
    """
    section = facts.section
    if not rules.adds_head_dim:
        lacks_head_dim = "head_dim" in section and section["head_dim"] is None
    else:
        lacks_head_dim = facts.model_type in NULL_HEAD_DIM and section.get("head_dim") is None
        lacks_head_dim = lacks_head_dim and view.rope_type in _MULTIPLY_HEAD_DIM
    if lacks_head_dim:
        raise CannotLoadError(f"stops: {view.rope_type} with head_dim null")
    handler = _TYPES.get(view.rope_type)
    return handler(view, rules) if handler else tables.unknown(view)


class Transformers(Runtime):
    """Hugging Face transformers, with stock classes. It sets no limit on the length of a sequence."""

    name = "transformers"
    order = 10

    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        def serve(view: View) -> tuple[int | None, list[Problem]]:
            limit = facts.tokenizer_max_length
            if limit is None or limit >= facts.target_length:
                return None, []
            text = f"the tokenizer's model_max_length is {limit}: with truncation=True it cuts there"
            return None, [Problem("tokenizer-capped", text)]

        def row(rules: TransformersRules) -> RuntimeReading:
            evidence = evidence_of(self.name, rules.version, facts)
            return read(
                self.name, rules.version, facts, rules.view, partial(table, rules=rules, facts=facts), serve, evidence
            )

        return [row(rules) for rules in VERSIONS]

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        readings = self.readings(facts)
        newest = readings[-1]
        wrong = [line for line in newest.problems if line.code != "tokenizer-capped"]
        if wrong:
            return NextStep(self.name, None, "; ".join(line.text for line in wrong))
        notes = [line.text for line in newest.problems]
        bad = [reading.version for reading in readings[:-1] if not reading.ok and reading.problems != newest.problems]
        if bad:
            notes.append(f"computes something else in {', '.join(bad)}")
        if facts.method.depends_on_seq_len:
            notes.append("the whole batch is rotated for its longest sequence, and cached keys keep older rotations")
        location = json.dumps(facts.location, ensure_ascii=False)
        return NextStep(self.name, f"{_class(facts)}.from_pretrained({location})", None, tuple(notes))


def _class(facts: CheckpointFacts) -> str:
    """Returns the class to type: models that also see or hear are loaded by the one that they name."""
    architectures = facts.config.get("architectures") or ()
    is_nested = facts.section is not facts.config or any("_config" in key for key in facts.config)
    is_multimodal = is_nested and "CausalLM" not in str(architectures)
    return str(architectures[0]) if is_multimodal and architectures else "AutoModelForCausalLM"
