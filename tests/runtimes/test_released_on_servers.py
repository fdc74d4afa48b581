"""What vLLM and sglang make of blocks as they were released, and how many tokens they serve."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ropectl.hf.config.source import read_config
from ropectl.records import RuntimeReading
from ropectl.runtimes.facts import source_facts
from ropectl.runtimes.sglang import Sglang
from ropectl.runtimes.vllm import Vllm

LLAMA = {"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "num_hidden_layers": 2}
SCOUT = {
    "model_type": "llama4_text", "hidden_size": 5120, "num_attention_heads": 40, "head_dim": 128, "num_hidden_layers": 2,
    "attention_chunk_size": 8192, "max_position_embeddings": 10485760, "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
    },
}  # fmt: skip
COMMAND_R = {
    "model_type": "cohere", "hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 2,
    "max_position_embeddings": 8192, "model_max_length": 131072, "rope_theta": 8000000.0,
}  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128, "num_hidden_layers": 2,
    "qk_rope_head_dim": 64, "rope_theta": 10000, "max_position_embeddings": 163840,
    "rope_scaling": {
        "type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
    },
}  # fmt: skip
QWEN_1M = {
    "model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
    "num_hidden_layers": 2, "max_position_embeddings": 1010000, "rope_theta": 10000000.0,
    "dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192, "original_max_position_embeddings": 262144},
}  # fmt: skip
LLAMA_32 = {
    **LLAMA, "head_dim": 64, "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}  # fmt: skip
MINISTRAL3 = {
    "model_type": "ministral3", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128, "num_hidden_layers": 2,
    "max_position_embeddings": 262144,
    "rope_parameters": {
        "rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 16384, "rope_theta": 1e6, "mscale": 1.0,
        "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1, "beta_fast": 32.0, "beta_slow": 1.0,
    },
}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 2880, "num_attention_heads": 64, "head_dim": 64, "num_hidden_layers": 2,
    "max_position_embeddings": 131072, "rope_theta": 150000,
    "rope_scaling": {
        "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 4096,
    },
}  # fmt: skip
DEEPSEEK_CODER = {
    **LLAMA, "max_position_embeddings": 16384, "rope_theta": 100000.0, "rope_scaling": {"type": "linear", "factor": 4.0},
}  # fmt: skip
INTERNLM3 = {
    **LLAMA, "max_position_embeddings": 32768, "rope_theta": 5e7, "rope_scaling": {"rope_type": "dynamic", "factor": 6.0},
}  # fmt: skip
QWEN3 = {
    "model_type": "qwen3", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128, "num_hidden_layers": 2,
    "max_position_embeddings": 40960, "rope_theta": 1e6,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
}  # fmt: skip


def rows(folder: Path, config: Mapping[str, Any]) -> dict[str, RuntimeReading]:
    """The readings of both servers by runtime and version."""
    (folder / "config.json").write_text(json.dumps(config))
    facts = source_facts(read_config(str(folder)), None)
    assert facts is not None
    readings = [*Vllm().readings(facts), *Sglang().readings(facts)]
    return {f"{reading.runtime} {reading.version}": reading for reading in readings}


@pytest.mark.parametrize(
    ("config", "length"),
    [
        (SCOUT, 10485760),
        (COMMAND_R, 131072),
        (GEMMA3, 131072),
        (DEEPSEEK_V3, 163840),
        (LLAMA_32, 131072),
        (GPT_OSS, 131072),
    ],
    ids=["Llama 4 Scout", "Command-R", "Gemma 3", "DeepSeek V3", "Llama 3.2", "gpt-oss"],
)
def test_what_is_served_is_what_is_declared(tmp_path: Path, config: dict[str, Any], length: int) -> None:
    found = rows(tmp_path, config)
    for name in ("vllm 0.32", "sglang 0.5.23"):
        reading = found[name]
        assert reading.evidence.kind in ("run", "read"), name
        assert reading.usable_length == length, name
        assert not any(problem.code.startswith("length") for problem in reading.problems), name
    assert all(row.usable_length in (None, length) for row in found.values())


@pytest.mark.parametrize(
    "config", [SCOUT, COMMAND_R, DEEPSEEK_V3, LLAMA_32], ids=["Scout", "Command-R", "DeepSeek V3", "3.2"]
)
def test_what_is_computed_is_what_is_meant(tmp_path: Path, config: dict[str, Any]) -> None:
    for name, reading in rows(tmp_path, config).items():
        if reading.evidence.kind != "unknown":
            assert reading.ok and reading.attention_factor == pytest.approx(1.0), (name, reading.problems)


def test_gemma_3_is_unscaled_in_sglang(tmp_path: Path) -> None:
    """Its class hands the rotary class ``default`` for either kind of layer, whatever the file says."""
    found = rows(tmp_path, GEMMA3)
    assert [problem.code for problem in found["sglang 0.5.23"].problems] == ["factor-ignored"]
    assert found["vllm 0.32"].ok and found["vllm 0.32"].evidence.kind == "run"


def test_attention_by_chunks_stops_later_vllm(tmp_path: Path) -> None:
    found = rows(tmp_path, QWEN_1M)
    assert [problem.code for problem in found["vllm 0.32"].problems] == ["dual-chunk"]
    assert found["vllm 0.32"].loads is False and found["vllm 0.9"].loads is not False
    assert found["sglang 0.5.23"].evidence.kind == "unknown"  # it has an engine for them, which was not looked at


def test_mscales_are_read_after_0_29(tmp_path: Path) -> None:
    """Ministral 3 in releases up to 0.29: the attention factor of plain YaRN, 0.1 ln 16 + 1, and no query scale in any."""
    found = rows(tmp_path, MINISTRAL3)
    old, new = found["vllm 0.29"], found["vllm 0.32"]
    assert old.attention_factor == pytest.approx(1.2772588722) and new.attention_factor == pytest.approx(1.0)
    assert "attention-factor-ignored" in {problem.code for problem in old.problems}
    assert {problem.code for problem in new.problems} == {"query-scale-ignored"}


@pytest.mark.parametrize(
    ("config", "without"), [(MINISTRAL3, ("0.9", "0.13")), (GPT_OSS, ("0.9",))], ids=["Ministral 3", "gpt-oss"]
)
def test_versions_without_the_model_type(tmp_path: Path, config: dict[str, Any], without: tuple[str, ...]) -> None:
    found = rows(tmp_path, config)
    assert {
        name for name, reading in found.items() if [each.code for each in reading.problems] == ["no-such-model-type"]
    } == {f"vllm {version}" for version in without}
    assert all(found[f"vllm {version}"].evidence.kind == "run" for version in without)


def test_a_ramp_that_is_not_rounded(tmp_path: Path) -> None:
    found = rows(tmp_path, GPT_OSS)
    assert found["vllm 0.32"].ok and found["vllm 0.32"].evidence.kind == "run"


def test_a_declared_length_that_is_scaled_already(tmp_path: Path) -> None:
    for name, reading in rows(tmp_path, DEEPSEEK_CODER).items():
        assert reading.usable_length == 65536, name
        assert [problem.code for problem in reading.problems] == ["length-multiplied"]


def test_dynamic_of_internlm3(tmp_path: Path) -> None:
    """One stretched table in older vLLM and in sglang, scale 6^2 - 6 + 1 = 31; unscaled in later vLLM."""
    found = rows(tmp_path, INTERNLM3)
    for name in ("vllm 0.9", "vllm 0.13", "sglang 0.5.23"):
        assert any("scale 31" in problem.text for problem in found[name].problems), name
    for name in ("vllm 0.29", "vllm 0.32"):
        assert [problem.code for problem in found[name].problems] == ["dynamic-no-op", "position-table-short"]


def test_readers_that_differ_about_a_declared_length(tmp_path: Path) -> None:
    """Qwen3-8B with the block of its card: 4 x 32768 of which 40960 are declared."""
    found = {name: reading.usable_length for name, reading in rows(tmp_path, QWEN3).items()}
    assert found == {
        "vllm 0.9": 131072, "vllm 0.13": 131072, "vllm 0.29": 131072, "vllm 0.32": 40960, "sglang 0.5.23": 40960,
    }  # fmt: skip


def test_what_comes_with_its_own_code_may_be_read_by_it(tmp_path: Path) -> None:
    """A version without the model type says nothing of such a file."""
    config = {**MINISTRAL3, "auto_map": {"AutoConfig": "configuration.Config"}}
    assert rows(tmp_path, MINISTRAL3)["vllm 0.9"].loads is False
    assert rows(tmp_path, config)["vllm 0.9"].evidence.kind == "unknown"


@pytest.mark.parametrize(("declared", "served"), [(65_536, "ok"), (40_960, "length-capped")])
def test_a_factor_that_is_rounded_up_promises_no_more(tmp_path: Path, declared: int, served: str) -> None:
    """20 x 3584 = 71680 tokens: hardly more than 65536 declared, far more than 40960."""
    block = {"rope_type": "yarn", "factor": 20.0, "original_max_position_embeddings": 3584}
    config = {
        "model_type": "llama", "hidden_size": 2560, "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128,
        "num_hidden_layers": 2, "max_position_embeddings": declared, "rope_theta": 10_000.0, "rope_scaling": block,
    }  # fmt: skip
    row = rows(tmp_path, config)["vllm 0.32"]
    assert [problem.code for problem in row.problems] == ([] if served == "ok" else [served])
