"""Runtimes differ in what they compute from a table in which some pairs stand still."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.hf.config.family_patch import family_patch
from ropectl.hf.config.writer import patched_config
from ropectl.records import RuntimeReading
from ropectl.rope.frequencies import base_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import llama_config, patch_facts
from ropectl.runtimes.matrix import next_steps, read_all
from ropectl.runtimes.runtime import CheckpointFacts
from tests.tolerances import EXACT

GEOMETRY = RopeGeometry(512, 1e6, 8192, 64)
BLOCKS = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
}


def facts(model_type: str, spec: str) -> CheckpointFacts:
    """A checkpoint of this type, patched."""
    config: dict[str, Any] = {
        "model_type": model_type,
        "hidden_size": 2304,
        "num_attention_heads": 8,
        "head_dim": 256 if model_type == "gemma4_text" else 512,
        "global_head_dim": 512,
        "max_position_embeddings": 8192,
        "rope_parameters": BLOCKS,
    }
    method = parse_method(spec)
    written = patched_config(config, family_patch(method, GEOMETRY, config))
    target = method.target_length(GEOMETRY)
    return CheckpointFacts(written, GEOMETRY, method, target, "./out", layer_type="full_attention")


def newest(checkpoint: CheckpointFacts) -> dict[str, RuntimeReading]:
    return {reading.runtime: reading for reading in read_all(checkpoint)}


def codes(reading: RuntimeReading) -> set[str]:
    return {problem.code for problem in reading.problems}


@pytest.mark.parametrize("spec", ["none", "ntk:factor=4"])
def test_a_base_is_read_by_all_that_know_gemma4(spec: str) -> None:
    found = newest(facts("gemma4_text", spec))
    assert found["sglang"].evidence.kind == "unknown", "its class was not run"
    for name in ("transformers", "vllm", "llama.cpp"):
        assert found[name].max_deviation == pytest.approx(0.0, abs=EXACT), name
        assert not codes(found[name]), name


def test_the_factor_is_read_by_transformers_only() -> None:
    """vLLM's Gemma4RotaryEmbedding and the converter of llama.cpp ignore it."""
    checkpoint = facts("gemma4_text", "pi:factor=4")
    found = newest(checkpoint)
    assert not codes(found["transformers"]) and found["transformers"].max_deviation == pytest.approx(0.0, abs=EXACT)
    for name in ("vllm", "llama.cpp"):
        assert "factor-ignored" in codes(found[name]), name
        assert found[name].max_deviation == pytest.approx(3.0)
    steps = {step.runtime: step for step in next_steps(checkpoint)}
    assert steps["vllm"].command is None and "factor = 4" in str(steps["vllm"].refusal)
    assert "not known" in str(steps["sglang"].notes)
    assert "--rope-scaling linear --rope-scale 4" in str(steps["llama.cpp"].command)


def test_other_families_turn_all_pairs_where_the_share_is_not_read() -> None:
    found = newest(facts("lfm3", "none"))
    assert not codes(found["transformers"]) and found["llama.cpp"].loads is None, (
        "a family that its converter does not have"
    )
    in_sglang = newest(facts("lfm2", "none"))["sglang"]
    assert "share-ignored" in codes(in_sglang) and in_sglang.inv_freq == base_inv_freq(512, 1e6)


def test_very_large_divisors_stand_still() -> None:
    """The universal form's 1e30 does not count as a deviation from a pair that is meant to have frequency 0."""
    found = newest(facts("lfm3", "yarn:factor=4"))
    assert found["transformers"].max_deviation == pytest.approx(0.0, abs=EXACT) and not codes(found["transformers"])


def test_what_follows_the_length_is_looked_at_frozen() -> None:
    method = parse_method("dynamic-ntk")
    found = newest(patch_facts(llama_config(GEOMETRY), GEOMETRY, method, "./out", target_length=32_768))
    assert found["transformers"].rope_type == "proportional" and not codes(found["transformers"])
    table = found["transformers"].inv_freq
    assert table is not None and table == pytest.approx(method.frequencies(GEOMETRY, 32_768).inv_freq, rel=EXACT)


def test_numbers_alone_stand_for_a_model_of_that_kind() -> None:
    config = llama_config(GEOMETRY)
    assert config["rope_parameters"]["rope_type"] == "proportional"
    found = newest(CheckpointFacts(config, GEOMETRY, parse_method("none"), 8192, "./model"))
    assert found["transformers"].max_deviation == pytest.approx(0.0, abs=EXACT)
