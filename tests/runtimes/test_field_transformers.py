"""Blocks of released models: what transformers makes of them, as its own classes compute it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.hf.config.source import read_config
from ropectl.records import NextStep, RuntimeReading
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import source_facts
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.transformers import Transformers
from tests.tolerances import EXACT, PARITY

MLA = {"hidden_size": 7168, "num_attention_heads": 64, "num_hidden_layers": 2, "qk_rope_head_dim": 64}
KIMI = {
    **{"model_type": "deepseek_v3", **MLA, "max_position_embeddings": 131072, "rope_theta": 50_000.0},
    "rope_scaling": {
        **{"type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096},
        **{"beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0},
    },
}
DEEPSEEK = {
    **{"model_type": "deepseek_v3", **MLA, "max_position_embeddings": 163840, "rope_theta": 10_000.0},
    "rope_scaling": {
        **{"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
        **{"beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0},
    },
}
SCOUT = {
    **{"model_type": "llama4_text", "hidden_size": 5120, "num_attention_heads": 40, "head_dim": 128, "num_hidden_layers": 2},
    **{"attention_chunk_size": 8192, "max_position_embeddings": 10_485_760, "rope_theta": 500_000.0},
    "rope_scaling": {
        **{"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0},
        "original_max_position_embeddings": 8192,
    },
}  # fmt: skip
HUNYUAN = {
    **{"model_type": "hunyuan_v1_dense", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128},
    **{"num_hidden_layers": 2, "max_position_embeddings": 262_144, "rope_theta": 10_000.0},
    "rope_scaling": {
        **{"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1},
        **{"mscale": 1.0, "mscale_all_dim": 1.0},
    },
}
PHI3_SU = {
    **{"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "num_hidden_layers": 2, "rope_theta": 10_000.0},
    **{"max_position_embeddings": 131_072, "original_max_position_embeddings": 4096},
    "rope_scaling": {"type": "su", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48},
}  # fmt: skip


def checkpoint(config: dict[str, Any], rotary_dim: int, trained: int) -> CheckpointFacts:
    geometry = RopeGeometry(rotary_dim, config.get("rope_theta", 10_000.0), trained)
    return CheckpointFacts(config, geometry, parse_method("none"), config["max_position_embeddings"], "./model")


def rows(config: dict[str, Any], rotary_dim: int = 64, trained: int = 4096) -> dict[str, RuntimeReading]:
    return {found.version: found for found in Transformers().readings(checkpoint(config, rotary_dim, trained))}


def divisors(found: RuntimeReading, theta: float) -> list[float]:
    """By how much each pair is slowed."""
    d = 2 * len(found.inv_freq or ())
    return [theta ** (-2 * i / d) / value for i, value in enumerate(found.inv_freq or ())]


def absent(found: RuntimeReading) -> bool:
    return found.loads is False and [problem.code for problem in found.problems] == ["no-such-model-type"]


def test_equal_bounds_are_a_step() -> None:
    """Llama 4 Scout: 2 pi 500000^(2i/128) passes 8192 at i = 35."""
    found = rows(SCOUT, 128, 8192)
    assert absent(found["4.44"]) and absent(found["4.48"])
    for version in ("4.51", "4.57", "5.0", "5.24"):
        assert found[version].loads and found[version].evidence.kind == "run", version
        assert divisors(found[version], 500_000.0) == pytest.approx([1.0] * 35 + [16.0] * 29, rel=EXACT)


def test_equal_betas_are_a_step() -> None:
    """Kimi K2: both ends of the ramp are at pair 19.165, rounded to 19 and 20."""
    found = rows(KIMI)
    for version in ("4.51", "4.57", "5.0", "5.24"):
        assert found[version].attention_factor == 1.0 and found[version].evidence.kind == "run"
        assert divisors(found[version], 50_000.0) == pytest.approx([1.0] * 20 + [32.0] * 12, rel=EXACT)


def test_deepseek_has_no_class_before_4_51() -> None:
    found = rows(DEEPSEEK)
    assert absent(found["4.44"]) and absent(found["4.48"])
    assert "before 4.51" in found["4.44"].problems[0].text and found["4.44"].evidence.kind == "run"
    assert all(
        found[version].attention_factor == pytest.approx(1.0, rel=PARITY) for version in ("4.51", "4.57", "5.24")
    )


def test_alpha_is_a_base() -> None:
    """Hunyuan: 10000 * 1000^(128/126) = 11158839.925, at every length."""
    found = rows(HUNYUAN, 128, 262_144)
    base = 10_000 * 1000 ** (128 / 126)
    for version in ("4.57", "5.0", "5.24"):
        assert found[version].loads and found[version].evidence.kind == "run", version
        assert found[version].inv_freq[32] == pytest.approx(base**-0.5, rel=EXACT)
    assert absent(found["4.44"]) and absent(found["4.51"])


def test_su_stops_in_transformers_5() -> None:
    """The first revision of Phi-3-mini-128k names its type as LongRoPE was called then."""
    found = rows(PHI3_SU, 96)
    assert all(found[version].loads for version in ("4.44", "4.48", "4.51", "4.53", "4.55", "4.57"))
    for version in ("5.0", "5.24"):
        assert found[version].loads is False and "longrope" in found[version].problems[0].text


@pytest.mark.parametrize(
    ("model_type", "first"),
    [
        ("gemma3_text", "4.51"),
        ("qwen3", "4.51"),
        ("glm4_moe", "4.55"),
        ("gpt_oss", "4.55"),
        ("smollm3", "4.53"),
        ("apertus", "4.57"),
        ("seed_oss", "4.57"),
        ("olmo3", "4.57"),
        ("ministral3", "5.0"),
        ("qwen3_5_text", "5.24"),
    ],
)
def test_a_type_that_a_version_does_not_have(model_type: str, first: str) -> None:
    """It is not judged, and no advice follows from it."""
    config = {
        **{"model_type": model_type, "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "head_dim": 64},
        **{"max_position_embeddings": 4096, "rope_theta": 10_000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    }  # fmt: skip
    found = rows(config)
    without = list(found)[: list(found).index(first)]
    assert without and all(absent(found[version]) for version in without) and not absent(found[first])
    assert f"before {first}" in found[without[0]].problems[0].text
    step: NextStep = Transformers().next_step(checkpoint(config, 64, 4096))
    assert not any(version in note for note in step.notes for version in without)


def test_two_lists_of_phi_moe_are_meant_past_the_trained_length(tmp_path: Path) -> None:
    """transformers 4.57 takes the long one there, 5.24 the short one at every length."""
    lists = {"short_factor": [1.0] * 64, "long_factor": [1.3] * 32 + [32.0] * 32}
    block = {
        "type": "longrope",
        "short_mscale": 1.24,
        "long_mscale": 1.24,
        "original_max_position_embeddings": 4096,
        **lists,
    }
    config = {
        "model_type": "phimoe", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
        "num_hidden_layers": 2, "max_position_embeddings": 131_072, "original_max_position_embeddings": 4096,
        "rope_theta": 10_000.0, "rope_scaling": block,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    source = read_config(str(tmp_path))
    found = {row.version: row for row in Transformers().readings(source_facts(source, None))}
    assert found["4.57"].ok and found["4.57"].inv_freq[-1] == pytest.approx(10_000 ** (-126 / 128) / 32)
    assert [problem.code for problem in found["5.24"].problems] == ["static-per-model"]
    assert any("means long_factor" in warning for warning in source.rope.warnings)
