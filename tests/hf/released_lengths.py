"""Files as models were released with them, with what is true of each: trained and declared length, and what rotates.

Marks: S, the block was seen in public sources; M, it is from memory. Arithmetic stands where a number follows from others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.hf.released import RELEASED


@dataclass(frozen=True)
class Released:
    """A released file and what is true of it.

    Attributes:
        file: The content of its ``config.json``, as far as it is about rotation.
        mark: S or M.
        trained: L [tokens].
        dims: Rotated dimensions a head.
        theta: The base.
        method: The scaling that is in force.
        declared: The context that it declares; L where it is left out [tokens].
        layers: The layer type that a scaling reaches; None where all share one table.
        remark: Part of the only warning; empty where there is nothing to say.
    """

    file: dict[str, Any]
    mark: str
    trained: int
    dims: int
    theta: float
    method: str = "none"
    declared: int = 0
    layers: str | None = None
    remark: str = ""


_LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 4}
_HEADS = {"hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 4}


def _of(file: dict[str, Any], length: int, theta: float, **keys: Any) -> dict[str, Any]:
    return {**file, "max_position_embeddings": length, "rope_theta": theta, **keys}


def _linear(factor: float) -> dict[str, Any]:
    return {"rope_scaling": {"type": "linear", "factor": factor}}


def _yarn(factor: float, length: int, **keys: Any) -> dict[str, Any]:
    return {"rope_scaling": {"type": "yarn", "factor": factor, "original_max_position_embeddings": length, **keys}}


_K2 = {"beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
_MLA = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_attention_heads": 64,
    "num_hidden_layers": 2,
    "qk_rope_head_dim": 64,
}
_ONLY_WINDOWED = "Only the layers with a window"
_COHERE = {"model_type": "cohere", "hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 2}
_QWEN = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "num_hidden_layers": 2,
}
_CHUNKS = {"chunk_size": 262_144, "local_size": 8192, "original_max_position_embeddings": 262_144}
_STEP = {"low_freq_factor": 1.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 8192, "factor": 16.0}
_LISTS = {"short_factor": [1.0] * 48, "long_factor": [1.0 + pair for pair in range(48)]}
_K2_METHOD = "yarn:factor={},beta_fast=1,mscale=1,mscale_all_dim=1"

#: Model -> what is true of its file.
TRUE_OF: dict[str, Released] = {
    "Kimi K2": Released(
        _of(_MLA, 131_072, 5e4, **_yarn(32.0, 4096, **_K2)), "S", 4096, 64, 5e4, _K2_METHOD.format(32), 131_072
    ),
    "Kimi K2 Thinking": Released(
        _of(_MLA, 262_144, 5e4, **_yarn(64.0, 4096, **_K2)), "S", 4096, 64, 5e4, _K2_METHOD.format(64), 262_144
    ),
    "Llama 4 Scout": Released(
        {
            "model_type": "llama4_text", "hidden_size": 5120, "num_attention_heads": 40, "head_dim": 128,
            "num_hidden_layers": 4, "max_position_embeddings": 10_485_760, "rope_theta": 5e5,
            "rope_scaling": {**_STEP, "rope_type": "llama3"},
        },
        "S", 8192, 128, 5e5, "llama3:factor=16,high_freq_factor=1", 10_485_760, remark=_ONLY_WINDOWED,
    ),
    "Command-R": Released(
        _of(_COHERE, 8192, 8e6, model_max_length=131_072), "S", 131_072, 128, 8e6, remark="model_max_length = 131072"
    ),
    "Command-R 08-2024": Released(_of(_COHERE, 131_072, 4e6, model_max_length=131_072), "M", 131_072, 128, 4e6),
    "Vicuna 1.5 16k": Released(
        _of(_LLAMA, 4096, 1e4, max_sequence_length=16_384, **_linear(4.0)), "M", 4096, 128, 1e4, "pi:factor=4"
    ),
    "LLaMA": Released(_of(_LLAMA, 2048, 1e4, max_sequence_length=2048), "M", 2048, 128, 1e4),
    "Qwen2.5-1M": Released(
        _of(_QWEN, 1_010_000, 1e7, dual_chunk_attention_config=_CHUNKS), "S", 262_144, 128, 1e7,
        declared=1_010_000, remark="dual_chunk_attention_config",
    ),
    "Llama 3.2": Released(RELEASED["Llama 3.2"], "S", 8192, 128, 5e5, "llama3:factor=32", 131_072),
    "gpt-oss": Released(RELEASED["gpt-oss"], "S", 4096, 64, 1e6, "yarn:factor=32,truncate=false", 131_072),
    "OLMo 3": Released(
        _of(
            {"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 4}, 65_536, 5e5,
            **_yarn(8.0, 8192, attention_factor=1.2079441541679836, beta_fast=32, beta_slow=1, rope_type="yarn"),
        ),
        "S", 8192, 128, 5e5, "yarn:factor=8,attention_factor=1.2079441541679836", 65_536, "full_attention",
    ),
    "DeepSeek-R1-0528-Qwen3": Released(
        RELEASED["DeepSeek-R1-0528-Qwen3"], "M", 32_768, 128, 1e6, "yarn:factor=4", 131_072, remark="attn_factor = 0.878249"
    ),
    "Qwen3.5 with YaRN": Released(
        {
            "model_type": "qwen3_5",
            "text_config": {
                **RELEASED["Qwen3.5"]["text_config"], "max_position_embeddings": 1_048_576,
                "rope_parameters": {
                    "mrope_interleaved": True, "mrope_section": [11, 11, 10], "rope_type": "yarn", "rope_theta": 1e7,
                    "partial_rotary_factor": 0.25, "factor": 4.0, "original_max_position_embeddings": 262_144,
                },
            },
        },
        "S", 262_144, 64, 1e7, "yarn:factor=4", 1_048_576,
    ),
    "SmolLM3": Released(
        _of({"model_type": "smollm3", **_HEADS}, 65_536, 5e6, no_rope_layer_interval=4), "M", 65_536, 128, 5e6
    ),
    "EXAONE 4 32B": Released(
        _of({"model_type": "exaone4", **_HEADS}, 131_072, 1e6, sliding_window=4096, sliding_window_pattern=4), "M", 131_072,
        128, 1e6, remark=_ONLY_WINDOWED,
    ),
    "Command R7B": Released(
        _of({"model_type": "cohere2", **_HEADS, "head_dim": 128}, 132_096, 5e4, sliding_window=4096), "M", 132_096, 128, 5e4,
        remark=_ONLY_WINDOWED,
    ),
    "Yarn-Mistral-128k": Released(
        _of({**_LLAMA, "model_type": "mistral"}, 32_768, 1e4, sliding_window=131_072, **_yarn(16.0, 8192, finetuned=True)), "M",
        8192, 128, 1e4, "yarn:factor=16", 32_768, remark="YaRN by 16 over 8192 tokens makes 131072",
    ),
    "deepseek-coder-33b": Released(
        _of(_LLAMA, 16_384, 1e5, **_linear(4.0)), "M", 4096, 128, 1e5, "pi:factor=4", 16_384, remark="--original-length 16384"
    ),
    "LongChat": Released(
        _of(_LLAMA, 16_384, 1e4, **_linear(8.0)), "M", 2048, 128, 1e4, "pi:factor=8", 16_384, remark="--original-length 16384"
    ),
    "Phi-4-mini": Released(
        {
            "model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 24, "num_hidden_layers": 2, "pad_token_id": 0,
            "max_position_embeddings": 131_072, "original_max_position_embeddings": 4096, "partial_rotary_factor": 0.75,
            "rope_theta": 1e4, "rope_scaling": {**_LISTS, "type": "longrope"},
        },
        "M", 4096, 96, 1e4, "longrope", 131_072,
    ),
    "GLM-4.7-Flash": Released(
        {
            "model_type": "glm4_moe_lite", **_HEADS, "qk_rope_head_dim": 64, "max_position_embeddings": 202_752,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        },
        "S", 202_752, 64, 1e6,
    ),
    "Falcon-H1": Released(_of({"model_type": "falcon_h1", **_HEADS, "head_dim": 128}, 262_144, 1e11), "M", 262_144, 128, 1e11),
    "Falcon 3": Released(_of({**_LLAMA, "head_dim": 256}, 32_768, 1_000_042.0), "M", 32_768, 256, 1_000_042.0),
    "Gradient 1M": Released(_of(_LLAMA, 1_048_576, 3_580_165_449.0), "M", 1_048_576, 128, 3_580_165_449.0),
    "GLM-4.5": Released(
        _of({"model_type": "glm4_moe", **_HEADS, "head_dim": 128}, 131_072, 1e6, partial_rotary_factor=0.5), "M", 131_072, 64, 1e6
    ),
    "GLM-4": Released(
        _of({"model_type": "glm4", **_HEADS, "head_dim": 128}, 32_768, 1e4, partial_rotary_factor=0.5, pad_token_id=0), "M", 32_768, 64, 1e4
    ),
    "StableLM 2": Released(
        _of({"model_type": "stablelm", "hidden_size": 2048, "num_attention_heads": 32, "num_hidden_layers": 2}, 4096, 1e4,
            partial_rotary_factor=0.25), "M", 4096, 16, 1e4,
    ),
    "Phi-2": Released(
        _of({"model_type": "phi", "hidden_size": 2560, "num_attention_heads": 32, "num_hidden_layers": 2}, 2048, 1e4,
            partial_rotary_factor=0.4), "M", 2048, 32, 1e4,
    ),
    "Pythia 1B": Released(
        {"model_type": "gpt_neox", "hidden_size": 2048, "num_attention_heads": 8, "num_hidden_layers": 2,
         "max_position_embeddings": 2048, "rotary_emb_base": 10_000, "rotary_pct": 0.25}, "M", 2048, 64, 1e4,
    ),
    "MiniMax-M2": Released(
        _of({"model_type": "minimax_m2", "hidden_size": 3072, "num_attention_heads": 48, "head_dim": 128, "num_hidden_layers": 2},
            196_608, 5e6, rotary_dim=64), "M", 196_608, 64, 5e6,
    ),
    "Qwen3-Next": Released(
        _of({"model_type": "qwen3_next", **_HEADS, "head_dim": 256}, 262_144, 1e7, partial_rotary_factor=0.25), "M", 262_144, 64, 1e7
    ),
    "Bamba": Released(
        _of({"model_type": "bamba", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2}, 4096, 1e4), "M",
        4096, 64, 1e4,
    ),
    "InternLM 3": Released(RELEASED["InternLM 3"], "M", 32_768, 128, 1e6, "dynamic-ntk:inner_factor=6"),
    "Qwen2.5 with YaRN": Released(RELEASED["Qwen2.5 with YaRN"], "M", 32_768, 128, 1e6, "yarn:factor=4", 131_072),
    "Qwen3-8B with YaRN": Released(
        _of({**_LLAMA, "model_type": "qwen3", "head_dim": 128, "use_sliding_window": False}, 40_960, 1e6, **_yarn(4.0, 32_768)),
        "M", 32_768, 128, 1e6, "yarn:factor=4", 40_960, remark="max_position_embeddings is 40960",
    ),
}  # fmt: skip
