"""What single families do differently, by trait: which family has which in which version is collected (``runs/transformers.json``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ropectl.hf.config.lengths import TYPES_WITH_ORIGINAL_LENGTH
from ropectl.records import Problem
from ropectl.rope.frequencies import RopeFrequencies
from ropectl.runtimes import tables
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.tables import Table
from ropectl.runtimes.transformers_versions.model_types import default_theta
from ropectl.runtimes.transformers_versions.rules import TransformersRules, longrope, standard_table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, v5_block

#: Returns a table, stops, or returns None where the trait has no say.
Trait = Callable[[View, TransformersRules, CheckpointFacts], Table | None]

_MULTIPLY_HEAD_DIM = ("yarn", "dynamic", "longrope")


def _is_scaled(view: View) -> bool:
    return bool(view.block) and (view.rope_type or "default") != "default"


def _unscaled(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    plain = tables.default(view)
    if not _is_scaled(view):
        return plain
    return replace(plain, causes=(Problem("factor-ignored", "its classes read no scaling in this version: unscaled"),))


def _two_fields(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    block, factor = view.block, view.block.get("factor")
    if not block:
        return None
    is_right = len(block) == 2 and block.get("type") in ("linear", "dynamic") and isinstance(factor, float)
    if not is_right or not float(factor or 0) > 1:
        raise CannotLoadError("stops: its classes take a block of type (linear or dynamic) and factor only")
    return None


def _three_fields(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    block = view.block
    if not block:
        return None
    if len(block) != 3 or block.get("type") not in ("longrope", "su", "yarn"):
        raise CannotLoadError("stops: its classes take a block of type (longrope), short_factor and long_factor only")
    return longrope(replace(view, rope_type="longrope"), replace(rules, longrope="outer"))


def _rope_type_key(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if view.block and "rope_type" not in view.block:
        raise CannotLoadError("stops: its classes read rope_type, not the older key type")
    return None


def _longrope_only(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if view.rope_type not in ("default", "longrope"):
        hint = ": write longrope for su" if view.rope_type == "su" else ""
        raise CannotLoadError(
            f"stops: its classes take the types default and longrope only, not {view.rope_type}{hint}"
        )
    return None


def _default_only(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if _is_scaled(view):
        raise CannotLoadError(f"stops: its classes take the type default only, not {view.rope_type}")
    return None


def _original_needed(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if view.rope_type in TYPES_WITH_ORIGINAL_LENGTH and v5_block(facts).get(ORIGINAL) is None:
        raise CannotLoadError(f"stops: {view.rope_type} without {ORIGINAL} in the block")
    return None


def _llama3_only(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    return tables.llama3(replace(view, rope_type="llama3"), low_first=True) if view.block else None


def _head_dim_null(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    is_null = "head_dim" in facts.section and facts.section["head_dim"] is None
    if is_null and view.rope_type in _MULTIPLY_HEAD_DIM:
        raise CannotLoadError(f"stops: {view.rope_type} with head_dim null")
    return None


def _head_dim_absent(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if "head_dim" not in facts.section and view.rope_type in _MULTIPLY_HEAD_DIM:
        raise CannotLoadError(f"stops: {view.rope_type} without head_dim, which its class leaves null")
    return None


def _head_dim_given(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if "head_dim" in facts.section and facts.section["head_dim"] is None:
        raise CannotLoadError(f"stops: {view.rope_type} with head_dim null")
    return None


def _block_needed(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if not view.block:
        raise CannotLoadError("stops: its classes need a scaling block")
    return None


def _two_mscales(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if not _is_scaled(view):
        return None
    pair = [view.block.get(key) for key in ("short_mscale", "long_mscale")]
    if None in pair:
        raise CannotLoadError("stops: its classes need short_mscale and long_mscale in the block")
    length = view.required(ORIGINAL)
    if rules.dialect == 4:  # whose config class writes the block's length to the top level
        view = replace(view, outer_original=view.outer_original or length)
    found = longrope(view, replace(rules, longrope="outer" if rules.dialect == 4 else "short"))

    def frequencies(seq_len: int) -> RopeFrequencies:
        factor = float(pair[seq_len > length] or 0)
        return replace(found.frequencies(seq_len), attention_factor=factor)

    return replace(found, frequencies=frequencies)


def _alpha(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    alpha = view.block.get("alpha")
    return tables.ntk_static(view, float(alpha)) if view.rope_type == "dynamic" and alpha else None


def _alpha_until_limit(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    """In place of the base as trained, up to the limit; past it the type is the usual one."""
    if view.rope_type != "dynamic" or (rules.dialect == 5 and not view.block.get("alpha")):
        return None
    within, past = tables.ntk_static(view, float(view.required("alpha"))), tables.dynamic(view)

    def frequencies(seq_len: int) -> RopeFrequencies:
        return (past if seq_len > view.max_positions else within).frequencies(seq_len)

    text = f"past {view.max_positions} tokens the base follows the length, and alpha is not read"
    return Table(frequencies, causes=(Problem("frequencies-differ", text),))


def _no_layer_yarn(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if view.rope_type == "yarn" and facts.layer_type is not None:
        raise CannotLoadError("stops: yarn in the block of one layer type")
    return None


def _no_layer_blocks(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    if facts.layer_type is None or facts.section.get("rope_scaling"):
        return None
    theta = float(facts.section.get("rope_theta") or default_theta(rules.version, facts.model_type))
    return _unscaled(replace(view, theta=theta), rules, facts)


def _never_updates(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    """Its tables are built once, as for the shortest sequence."""
    if view.rope_type not in ("dynamic", "longrope"):
        return None
    found = standard_table(view, rules)
    cause = Problem("static-per-model", f"its {view.rope_type} table is that of short sequences, at every length")
    return replace(found, frequencies=lambda seq_len: found.frequencies(1), causes=(cause,))


def _mrope(view: View, rules: TransformersRules, facts: CheckpointFacts) -> Table | None:
    return tables.default(view) if view.rope_type == "mrope" else None


#: In the order in which they are asked.
TRAITS: Mapping[str, Trait] = {
    "head-dim-given": _head_dim_given,
    "unscaled": _unscaled,
    "two-fields": _two_fields,
    "three-fields": _three_fields,
    "rope-type-key": _rope_type_key,
    "block-needed": _block_needed,
    "longrope-only": _longrope_only,
    "default-only": _default_only,
    "original-needed": _original_needed,
    "llama3-only": _llama3_only,
    "head-dim-null": _head_dim_null,
    "head-dim-absent": _head_dim_absent,
    "two-mscales": _two_mscales,
    "no-layer-yarn": _no_layer_yarn,
    "no-layer-blocks": _no_layer_blocks,
    "alpha": _alpha,
    "alpha-until-limit": _alpha_until_limit,
    "mrope": _mrope,
    "never-updates": _never_updates,
}


def family_table(view: View, rules: TransformersRules, facts: CheckpointFacts, traits: Collection[str]) -> Table:
    """Returns what a version computes for a family with these traits.

    Raises:
        CannotLoadError: If it stops.
    """
    for name, trait in TRAITS.items():
        found = trait(view, rules, facts) if name in traits else None
        if found is not None:
            return found
    return standard_table(view, rules)
