"""Scaling blocks as models were released with them, each in the smallest file that its family reads."""

from __future__ import annotations

from typing import Any

_LLAMA = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "rope_theta": 1e6,
    "num_hidden_layers": 2,
}
_DEEPSEEK = {**_LLAMA, "num_key_value_heads": 32, "qk_rope_head_dim": 64, "rope_theta": 1e4}
_LISTS = {"short_factor": [1.0] * 48, "long_factor": [1.0 + i for i in range(48)]}
_PHI3 = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "pad_token_id": 0, "rope_theta": 1e4}
_HUNYUAN = {"alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
_MINISTRAL = {"mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1, "beta_fast": 32.0, "beta_slow": 1.0}


def _file(model_type: str, length: int, block: dict[str, Any] | None, **keys: Any) -> dict[str, Any]:
    return {**_LLAMA, "model_type": model_type, "max_position_embeddings": length, "rope_scaling": block, **keys}


def _llama3(factor: float, high: float = 4.0) -> dict[str, Any]:
    bounds = {"low_freq_factor": 1.0, "high_freq_factor": high, "original_max_position_embeddings": 8192}
    return {"rope_type": "llama3", "factor": factor, **bounds}


def _yarn(factor: float, length: int, **keys: Any) -> dict[str, Any]:
    return {"factor": factor, "original_max_position_embeddings": length, "type": "yarn", **keys}


#: Model -> its file. What ropectl says of each is true: none of their keys is misspelt or without effect.
RELEASED: dict[str, dict[str, Any]] = {
    "Llama 3.1": _file("llama", 131_072, _llama3(8.0), rope_theta=5e5),
    "Llama 3.2": _file("llama", 131_072, _llama3(32.0), rope_theta=5e5),
    "Apertus": _file("apertus", 65_536, {**_llama3(8.0), "type": "llama3"}, rope_theta=1.2e7),
    "Step 3": _file("llama", 65_536, _llama3(4.0, 32.0)),
    "LongAlpaca": _file("llama", 32_768, {"factor": 8.0, "type": "linear"}),
    "InternLM 3": _file("llama", 32_768, {"factor": 6.0, "rope_type": "dynamic"}),
    "Seed-OSS": _file("seed_oss", 524_288, {"rope_type": "default"}, head_dim=128),
    "Yarn-Llama-2-64k": _file("llama", 65_536, _yarn(16.0, 4096, finetuned=True), rope_theta=1e4),
    "Qwen2.5 with YaRN": _file("qwen2", 131_072, _yarn(4.0, 32_768)),
    "DeepSeek-R1-0528-Qwen3": _file(
        "qwen3", 131_072, {**_yarn(4.0, 32_768, attn_factor=0.8782488562869419), "rope_type": "yarn"}, head_dim=128
    ),
    "gpt-oss": _file("gpt_oss", 131_072, _yarn(32.0, 4096, beta_fast=32.0, beta_slow=1.0, truncate=False), head_dim=64),
    "DeepSeek V3": {
        **_file("deepseek_v3", 163_840, _yarn(40, 4096, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)),
        **_DEEPSEEK,
    },
    "Ministral 3": {
        **_file("ministral3", 262_144, None, head_dim=128),
        "rope_parameters": {**_yarn(16.0, 16_384, **_MINISTRAL), "rope_type": "yarn", "rope_theta": 1e6},
    },
    "HunYuan 7B": _file("hunyuan_v1_dense", 262_144, {"type": "dynamic", **_HUNYUAN}, head_dim=128, rope_theta=1e4),
    "Phi-3 mini 128k": {
        **_PHI3, "max_position_embeddings": 131_072, "original_max_position_embeddings": 4096,
        "rope_scaling": {**_LISTS, "type": "longrope"},
    },
    "Phi-3.5 MoE": _file(
        "phimoe", 131_072, {
            "short_factor": [1.0] * 64, "long_factor": [2.0] * 64, "short_mscale": 1.243, "long_mscale": 1.243,
            "original_max_position_embeddings": 4096, "type": "longrope",
        },
        original_max_position_embeddings=4096, rope_theta=1e4,
    ),
    "MiniCPM 4": _file(
        "llama", 32_768, {
            "rope_type": "longrope", "long_factor": [0.9977997200264581, *[1.5] * 63],
            "short_factor": [0.9977997200264581, *[1.5] * 63], "original_max_position_embeddings": 32_768,
        },
        rope_theta=1e4,
    ),
    "Qwen2-VL": _file("qwen2_vl", 32_768, {"type": "mrope", "mrope_section": [16, 24, 24]}),
    "Qwen3-VL": {
        "model_type": "qwen3_vl",
        "text_config": _file(
            "qwen3_vl_text", 262_144, {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
            head_dim=128,
        ),
    },
    "Qwen3.5": {
        "model_type": "qwen3_5",
        "text_config": {
            **_file("qwen3_5_text", 262_144, None, head_dim=256),
            "rope_parameters": {
                "mrope_interleaved": True, "mrope_section": [11, 11, 10], "rope_type": "default", "rope_theta": 1e7,
                "partial_rotary_factor": 0.25,
            },
        },
    },
    "Gemma 3": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 6, "sliding_window": 1024,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "max_position_embeddings": 131_072,
        },
    },
}  # fmt: skip

#: Those about which there is something else to say: the two meanings of ``attn_factor``, the length of a linear scaling.
REMARKED = ("DeepSeek-R1-0528-Qwen3", "LongAlpaca")
