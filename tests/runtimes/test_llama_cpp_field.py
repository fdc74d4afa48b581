"""Released models in llama.cpp: what the row says, and what is typed to start the server."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.gguf.architectures import architecture_of
from ropectl.hf.config.geometry import describe_rope
from ropectl.records import RuntimeReading
from ropectl.rope.frequencies import yarn_attention_factor
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import config_facts, patch_facts
from ropectl.runtimes.llama_cpp import LlamaCpp
from tests.tolerances import EXACT

Run = Callable[..., tuple[int, str, str]]
ORIGINAL = "original_max_position_embeddings"
SIZES = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2, "head_dim": 128}
MSCALES = {"beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}

DEEPSEEK = {
    **SIZES, "model_type": "deepseek_v3", "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512,
    "rope_theta": 10000.0, "max_position_embeddings": 163840,
    "rope_scaling": {"type": "yarn", "factor": 40, **MSCALES, ORIGINAL: 4096},
}  # fmt: skip
MINISTRAL = {
    **SIZES, "model_type": "ministral3", "max_position_embeddings": 262144,
    "rope_parameters": {
        "rope_type": "yarn", "factor": 16.0, ORIGINAL: 16384, "rope_theta": 1e6, **MSCALES, "llama_4_scaling_beta": 0.1
    },
}  # fmt: skip
HUNYUAN = {
    **SIZES, "model_type": "hunyuan_v1_dense", "rope_theta": 10000.0, "max_position_embeddings": 262144,
    "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, **MSCALES},
}  # fmt: skip
SCOUT = {
    **SIZES, "model_type": "llama4_text", "attention_chunk_size": 8192, "max_position_embeddings": 10485760,
    "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0, ORIGINAL: 8192},
}  # fmt: skip
GPT_OSS = {
    **SIZES, "model_type": "gpt_oss", "head_dim": 64, "rope_theta": 150000.0, "max_position_embeddings": 131072,
    "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"],
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, ORIGINAL: 4096},
}  # fmt: skip


def row(config: dict[str, Any]) -> RuntimeReading:
    """What llama.cpp makes of a file as it stands."""
    return LlamaCpp().readings(config_facts(config, describe_rope(config), "./model"))[0]


def codes(reading: RuntimeReading) -> set[str]:
    return {problem.code for problem in reading.problems}


@pytest.mark.parametrize("config", [DEEPSEEK, MINISTRAL, HUNYUAN, SCOUT], ids=lambda config: config["model_type"])
def test_released_blocks_that_llama_cpp_computes(config: dict[str, Any]) -> None:
    reading = row(config)
    assert reading.ok and reading.evidence.kind == "run", reading.problems
    assert reading.attention_factor == pytest.approx(1.0, rel=EXACT)


def test_hunyuan_is_a_base_and_a_context_of_its_own() -> None:
    """The 13B says 32768 in its file; the converter writes 262144 for it too."""
    base = 10000.0 * 1000.0 ** (128 / 126)
    for length in (262144, 32768):
        reading = row({**HUNYUAN, "max_position_embeddings": length})
        assert reading.inv_freq is not None and reading.usable_length == 262144
        assert reading.inv_freq[32] == pytest.approx(base**-0.5, rel=1e-9)
    assert base == pytest.approx(11158839.925, rel=1e-9)


def test_kimi_k2_is_loaded_with_the_usual_ramp() -> None:
    """Equal betas are a step; the architecture does not read them."""
    block = {**DEEPSEEK["rope_scaling"], "factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0}
    reading = row({**DEEPSEEK, "rope_theta": 50000.0, "max_position_embeddings": 131072, "rope_scaling": block})
    assert codes(reading) == {"betas-ignored"} and reading.attention_factor == pytest.approx(1.0)


def test_only_causes_that_change_a_number_are_listed() -> None:
    reading = row(GPT_OSS)
    assert codes(reading) == {"truncate-ignored"}
    rounded = {**GPT_OSS["rope_scaling"], "truncate": True}
    assert not codes(row({**GPT_OSS, "rope_scaling": rounded}))


def test_a_short_trained_length_is_converted_as_the_file_says() -> None:
    """The converter takes it from the block, not 8192 where the top level is silent."""
    config = {**SIZES, "model_type": "llama", "rope_theta": 10000.0, "max_position_embeddings": 4096}
    rope = describe_rope(config)
    facts = patch_facts(config, rope.geometry, parse_method("ntk-by-parts", 4.0, rope.geometry), "./model")
    reading = LlamaCpp().readings(facts)[0]
    assert reading.ok and reading.evidence.kind == "run" and reading.inv_freq is not None
    divisor = 10000.0 ** (-2 * 26 / 128) / reading.inv_freq[26]
    assert divisor == pytest.approx(1.667, abs=5e-4)


@pytest.mark.parametrize(
    ("model_type", "prefix"),
    [
        ("qwen3_moe", "qwen3moe."),
        ("glm4_moe", "glm4moe."),
        ("gpt_oss", "gpt-oss."),
        ("cohere", "command-r."),
        ("ernie4_5_moe", "ernie4_5-moe."),
    ],
)
def test_overrides_have_the_names_of_gguf(ropectl: Run, tmp_path: Path, model_type: str, prefix: str) -> None:
    """llama.cpp passes over keys that it does not know without a word."""
    config = {
        **SIZES,
        "model_type": model_type,
        "rope_theta": 10000.0,
        "max_position_embeddings": 32768,
        "vocab_size": 64,
    }
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(config))
    command = ("patch", str(model), "-o", str(tmp_path / "out"), "-m", "yarn:attention_factor=1", "--factor", "2")
    replaced = ("--replace",) if model_type == "gpt_oss" else ()  # scaled by its class
    code, out, err = ropectl(*command, *replaced, "--dry-run", "--format", "json")
    assert code == 0, err
    step = next(step for step in json.loads(out)["next_steps"] if step["runtime"] == "llama.cpp")
    value = float(step["command"].split(f"--override-kv {prefix}rope.scaling.attn_factor=float:")[1].split()[0])
    assert value == pytest.approx(1 / yarn_attention_factor(2.0), rel=1e-9) and value == pytest.approx(0.9351783746)
    assert architecture_of(model_type) + "." == prefix
    assert "--outtype f32" in step["command"]


def test_what_does_not_convert_is_no_command() -> None:
    config = {**SIZES, "model_type": "granite", "rope_theta": 10000.0, "max_position_embeddings": 4096}
    rope = describe_rope(config)
    facts = patch_facts(config, rope.geometry, parse_method("llama3", 4.0, rope.geometry), "./model")
    reading, step = LlamaCpp().readings(facts)[0], LlamaCpp().next_step(facts)
    assert reading.loads is False and step.command is None and "rope_freqs.weight" in str(step.refusal)


def test_a_family_that_was_never_run_is_not_judged() -> None:
    reading = row({**SIZES, "model_type": "nanochat", "max_position_embeddings": 2048, "rope_theta": 10000.0})
    assert reading.loads is None and not reading.problems and reading.evidence.kind == "unknown" and not reading.ok


def test_a_whole_model_with_an_architecture_of_its_own_is_not_judged_by_its_text_part() -> None:
    """Mistral Small 3.1: the text part alone would be a ``llama`` file."""
    text = {**SIZES, "model_type": "mistral", "rope_theta": 1e9, "max_position_embeddings": 131072}
    config = {"model_type": "mistral3", "text_config": text}
    rope = describe_rope(config)
    facts = patch_facts(config, rope.geometry, parse_method("yarn:attention_factor=1", 2.0, rope.geometry), "./model")
    assert LlamaCpp().readings(facts)[0].evidence.kind == "unknown"
    assert "--override-kv mistral3.rope.scaling.attn_factor" in str(LlamaCpp().next_step(facts).command)


def test_windowed_layers_are_converted_unscaled() -> None:
    block = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    plain = {"rope_type": "default", "rope_theta": 1e6}
    config = {
        **SIZES, "model_type": "gemma3_text", "max_position_embeddings": 32768, "sliding_window": 1024,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {"sliding_attention": block, "full_attention": plain},
    }  # fmt: skip
    facts = config_facts(config, describe_rope(config, layers="sliding_attention"), "./model")
    reading = LlamaCpp().readings(facts)[0]
    assert codes(reading) >= {"factor-ignored"} and reading.evidence.kind == "read"


@pytest.mark.parametrize(("spec", "scale"), [("pi", 0.1 * math.log(4) + 1), ("yarn", 0.1 * math.log(4) + 1)])
def test_latent_attention_takes_no_attention_factor(spec: str, scale: float) -> None:
    config = {key: value for key, value in DEEPSEEK.items() if key != "rope_scaling"} | {
        "max_position_embeddings": 4096
    }
    rope = describe_rope(config)
    facts = patch_facts(config, rope.geometry, parse_method(spec, 4.0, rope.geometry), "./model")
    problems = {problem.code: problem.text for problem in LlamaCpp().readings(facts)[0].problems}
    assert f"by {scale**2:.4f} more" in problems["softmax-scale"]
    assert "softmax scale" in str(LlamaCpp().next_step(facts).refusal)
