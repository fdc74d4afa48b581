"""Reads a config.json as transformers 4, as transformers 5, and as llama.cpp's converter does.

Run for transformers (``transformers_versions/rules.py`` says which), read in llama.cpp's ``convert_hf_to_gguf``
(``TextModel.__init__``). vLLM 0.32 and sglang 0.5.23 load configs with
transformers 5.19, so they see the 5 dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.hf.config.families import named
from ropectl.hf.config.layers import is_windowed
from ropectl.hf.config.lengths import TYPES_WITH_ORIGINAL_LENGTH
from ropectl.records import Problem
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.transformers_versions.model_types import default_block, default_theta

ORIGINAL = "original_max_position_embeddings"

#: Versions of transformers 5 whose configs do not check the types of their values.
_LENIENT = ("5.0",)

#: Keys that the validation of transformers 5 asks for, in addition to the original length, which it fills in.
_REQUIRED_V5 = {
    **dict.fromkeys(("linear", "dynamic", "yarn"), ("factor",)),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
}


class CannotLoadError(Exception):
    """A runtime stops on this file; the exception carries the red line."""

    def __init__(self, text: str, code: str = "cannot-load") -> None:
        super().__init__(text)
        self.problem = Problem(code, text)


@dataclass(frozen=True)
class View:
    """A config as one reader understands it.

    Attributes:
        rope_type: Type of scaling; None where the reader finds a block without one.
        block: The scaling block; empty if it finds none.
        theta: The base.
        max_positions: ``max_position_embeddings`` [tokens].
        outer_original: Top-level ``original_max_position_embeddings`` [tokens].
        rotary_dim: d.
        model_type: The family.
        causes: Keys that the reader ignores; red lines if its frequencies then differ from what was meant.
    """

    rope_type: str | None
    block: Mapping[str, Any]
    theta: float
    max_positions: int
    outer_original: int | None
    rotary_dim: int
    model_type: str
    causes: tuple[Problem, ...] = ()

    def required(self, key: str) -> Any:
        """Returns a value of the block.

        Raises:
            CannotLoadError: If it is missing or null.
        """
        value = self.block.get(key)
        if value is None:
            raise CannotLoadError(f"stops: {self.rope_type} without {key}")
        return value


def v4_view(facts: CheckpointFacts, version: str = "4.57") -> View:
    """Returns what transformers 4 reads: top-level ``rope_theta`` and ``rope_scaling`` only; ``type`` beats ``rope_type``.

    Args:
        facts: The checkpoint.
        version: The version whose classes fill in the base.
    """
    section = facts.section
    block = section.get("rope_scaling", default_block(version, facts.model_type))
    block = block if isinstance(block, Mapping) else None
    rope_type = "default" if block is None else block.get("type", block.get("rope_type"))
    theta = section.get("rope_theta", default_theta(version, facts.model_type))
    causes = []
    if block is None and _scales(v5_block(facts)):
        causes.append(Problem("factor-ignored", "does not read rope_parameters: unscaled"))
    return _view(facts, rope_type, block or {}, theta, causes)


def v5_view(facts: CheckpointFacts, version: str = "5.24") -> View:
    """Returns what transformers 5 reads: a non-null ``rope_scaling`` beats ``rope_parameters``; top level fills gaps.

    For the types with a trained length, the top-level ``original_max_position_embeddings`` beats the block's,
    and ``max_position_embeddings`` fills in for both.

    Args:
        facts: The checkpoint.
        version: The version whose classes fill in the base.

    Raises:
        CannotLoadError: If a length is not an int, which the strict configs refuse.
    """
    section = facts.section
    if version not in _LENIENT and isinstance(section.get("max_position_embeddings"), float):
        raise CannotLoadError(f"stops: max_position_embeddings = {section['max_position_embeddings']} is not an int")
    said = v5_block(facts)
    block = dict(said or default_block(version, facts.model_type) or {})
    rope_type = block.get("rope_type", block.get("type", "default"))
    theta = block.get("rope_theta") if said else section.get("rope_theta", block.get("rope_theta"))
    if theta is None:
        theta = section.get("rope_theta", default_theta(version, facts.model_type))
    causes = []
    if rope_type in TYPES_WITH_ORIGINAL_LENGTH:
        outer, inner = section.get(ORIGINAL), block.get(ORIGINAL)
        if outer is not None:
            if inner is not None and inner != outer:
                text = f"top-level {ORIGINAL} = {outer} beats the block's {inner}"
                causes.append(Problem("original-length-overridden", text))
            block[ORIGINAL] = outer
        elif ORIGINAL not in block:
            block[ORIGINAL] = _max_positions(facts)
            text = f"no {ORIGINAL}: takes max_position_embeddings = {block[ORIGINAL]}"
            causes.append(Problem("original-length-guessed", text))
    missing = [key for key in _REQUIRED_V5.get(str(rope_type), ()) if key not in block]
    if missing:
        raise CannotLoadError(f"stops: {rope_type} without {', '.join(missing)}")
    return _view(facts, rope_type, block, theta, causes)


def gguf_view(facts: CheckpointFacts) -> View:
    """Returns what llama.cpp's converter reads: the config as transformers 5 loads and saves it.

    So a non-null ``rope_scaling`` beats ``rope_parameters``; unlike there, the block's trained length beats the top level.

    Raises:
        CannotLoadError: If a length is not an int, which a GGUF file cannot hold.
    """
    limit = named(facts.section, "max_position_embeddings")
    if isinstance(limit, float):
        raise CannotLoadError(f"does not convert: max_position_embeddings = {limit} is not an int")
    block = dict(v5_block(facts))
    rope_type = block.get("rope_type", block.get("type")) or "default"
    causes = []
    if is_windowed(facts.layer_type or "") and rope_type != "default":
        rope_type = "default"
        causes.append(Problem("factor-ignored", "does not convert the scaling of windowed layers"))
    theta = block.get("rope_theta") or facts.section.get("rope_theta") or default_theta("5.24", facts.model_type)
    if block.get(ORIGINAL) is None and facts.section.get(ORIGINAL) is not None:
        block[ORIGINAL] = facts.section[ORIGINAL]
    if rope_type in TYPES_WITH_ORIGINAL_LENGTH and ORIGINAL not in block:
        block[ORIGINAL] = _max_positions(facts)
        text = f"no {ORIGINAL}: takes max_position_embeddings = {block[ORIGINAL]}"
        causes.append(Problem("original-length-guessed", text))
    return _view(facts, rope_type, block, theta, causes)


def v5_block(facts: CheckpointFacts) -> Mapping[str, Any]:
    """Returns the block that transformers 5 takes, of the scaled layer type where there are several."""
    block = facts.section.get("rope_scaling") or facts.section.get("rope_parameters") or {}
    return _layer_block(block, facts.layer_type)


def _layer_block(block: Mapping[str, Any], layer_type: str | None) -> Mapping[str, Any]:
    nested = block.get(layer_type or "full_attention")
    return nested if isinstance(nested, Mapping) else block


def _scales(block: Mapping[str, Any]) -> bool:
    return (block.get("rope_type") or block.get("type") or "default") != "default"


def _max_positions(facts: CheckpointFacts) -> int:
    return int(named(facts.section, "max_position_embeddings") or facts.geometry.original_max_position_embeddings)


def _view(
    facts: CheckpointFacts, rope_type: str | None, block: Mapping[str, Any], theta: Any, causes: list[Problem]
) -> View:
    if not theta:
        raise CannotLoadError(f"stops: rope_theta is {theta}")
    written = v5_block(facts).get("rope_theta") or facts.section.get("rope_theta")
    if written is not None and float(written) != float(theta):
        text = f"base {float(theta):g} in place of {float(written):g}: does not look where the file says it"
        causes.insert(0, Problem("theta-dropped", text))
    outer = facts.section.get(ORIGINAL)
    dim, limit = facts.geometry.rotary_dim, _max_positions(facts)
    return View(rope_type, block, float(theta), limit, outer, dim, facts.model_type, tuple(causes))
