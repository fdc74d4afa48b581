"""A tiny random model of any causal model type: one recipe over its class's own defaults, and a table of exceptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM


@dataclass(frozen=True)
class Sizes:
    """The sizes of a small model.

    Attributes:
        hidden: Width of a token's vector, and of the layers between.
        head: Channels of a head; half as many rotary pairs where all turn.
        rank: Width of bottlenecks and states.
        vocabulary: Number of tokens.
        trained: Trained length [tokens].
    """

    hidden: int = 64
    head: int = 16
    rank: int = 16
    vocabulary: int = 64
    trained: int = 64


TINY = Sizes()
#: Trained length of every tiny model [tokens].
TRAINED = TINY.trained
VOCABULARY = TINY.vocabulary


def recipe(sizes: Sizes) -> dict[str, int]:
    """Returns keys of any config, as regular expressions, and what they are set to."""
    return {
        r"vocab_size|vocab_size_per_layer_input|unpadded_vocab_size|audio_vocab_size": sizes.vocabulary,
        r"hidden_size|n_embd|d_model|embedding_size|lru_width|mamba_d_ssm|out_hidden_size|ple_embed_dim": sizes.hidden,
        r"attention_hidden_size|hidden_size_global|input_size|input_dim|conv_output_size": sizes.hidden,
        r"adapter_(in|out)_dim|adapter_input_size|projector_(in|out)put_dim": sizes.hidden,
        r"(v_|qk_nope_|qk_rope_|global_|swa_|swa_v_|attention_|index_|linear_(key_|value_)?)?head_dim": sizes.head,
        r"kv_channels|rotary_dim|mamba_d_head|mamba_headdim|mamba_d_state|mamba_chunk_size": sizes.head,
        r"qk_head_dim": 2 * sizes.head,
        r"num_hidden_layers|n_layers?|num_layers|depth|num_blocks|num_global_layers|num_layers_per_stack": 2,
        r"n_(input|recurrent|output)_layers|conf_num_hidden_layers": 2,
        r"num_attention_heads|n_heads?|num_heads|linear_num_heads|attention_heads|index_n_heads": 4,
        r"conf_num_attention_heads|swa_num_attention_heads": 4,
        r"num_key_value_heads|num_kv_heads|n_head_kv|num_global_key_value_heads|num_query_groups": 2,
        r"linear_num_(key|value)_heads|swa_num_key_value_heads": 2,
        r".*intermediate_size(_mlp)?|.*ffn_dim|.*ffn_hidden_size|intermediate_dim|mlp_dim": sizes.hidden,
        r"num_experts|num_local_experts|n_routed_experts|moe_num_experts": 4,
        r"num_experts_per_tok(en)?|moe_k|moe_topk|top_k_experts|moe_top_k": 2,
        r"n_group|topk_group|num_expert_group|o_groups": 1,
        r"(q|kv|o)_lora_rank|gated_norm_rank|adapter_rank|hc_lowrank|laurel_rank": sizes.rank,
        r"hidden_size_per_layer_input|router_hidden_size": sizes.rank,
        r"(original_)?max_position_embeddings|n_positions|n_ctx|model_max_length|max_seq_len": sizes.trained,
        r"first_k_dense_replace|num_dense_layers|num_kv_shared_layers|moe_layer_start_index": 1,
        r"max_window_layers|zero_expert_num": 1,
        r"mamba_n_heads|n_mamba_heads": 8,
    }


_NO_LONGER_MEANT = ("transformers_version", "_name_or_path", "architectures", "model_type", "dtype", "per_layer_config")
_DEPTH_KEYS = ("num_hidden_layers", "n_layers", "num_layers")

_QWEN4 = {
    "indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 16, "indexer_compress_ratio": 4,
    "ngram_vocab_size_base": 64, "split_ngram_parts": 4,
}  # fmt: skip
_ROPE = {"rope_type": "default", "rope_theta": 1e4}

#: What the recipe cannot know: values that a class has no default for, or that have to fit each other.
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1]},
    "blt": {"encoder_hash_byte_group_vocab": 64},
    "cohere2_moe": {"prefix_dense_sliding_window_pattern": 2},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _ROPE, "sliding_attention": _ROPE}},
    "dbrx": {"attn_config.rope_theta": 1e4, "attn_config.kv_n_heads": 2, "attn_config.clip_qkv": 8.0},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dory": {
        "num_hidden_layers": 12, "n_input_layers": 4, "n_recurrent_layers": 4, "n_output_layers": 4,
        "layer_types": ["sliding_attention", "mlp", "full_attention", "mlp"] * 3,
    },
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "falcon_h1": {"mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "gemma4": {"text_config.global_head_dim": 32},
    "gemma4_text": {"global_head_dim": 32},
    "gemma4_unified": {"text_config.global_head_dim": 32},
    "gemma4_unified_text": {"global_head_dim": 32},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"], "position_embedding_type": "rope"},
    "hrm_text": {"num_hidden_layers": 16, "num_layers_per_stack": 2},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mimo_v2_flash": {"head_dim": 48},
    "ministral": {"head_dim": 16},
    "nemotron": {"num_key_value_heads": 2},
    "qwen4_exp": {f"text_config.{key}": value for key, value in _QWEN4.items()},
    "qwen4_exp_text": _QWEN4,
    "zamba2": {
        "use_mem_rope": True, "attention_hidden_size": 128, "attention_head_dim": 32, "num_key_value_heads": 4,
        "layers_block_type": ["linear_attention", "hybrid"], "hybrid_layer_ids": [1],
    },
    "zaya": {"num_experts_per_tok": 1},
}  # fmt: skip


def tiny_config(model_type: str, **changes: Any) -> Any:
    """Returns a config of this type that makes a model of some ten thousand parameters.

    Args:
        model_type: As in the causal mapping of transformers.
        changes: Values by key, with dots for keys of parts; they come last.
    """
    return small_config(model_type, TINY, EXCEPTIONS.get(model_type, {}) | changes)


def small_config(model_type: str, sizes: Sizes, changes: Mapping[str, Any]) -> Any:
    """Returns a config of this type in these sizes; ``changes`` as for :func:`tiny_config`."""
    kind = CONFIG_MAPPING[model_type]
    defaults = {key: value for key, value in kind().to_dict().items() if key not in _NO_LONGER_MEANT}
    values = _shrunk(defaults, sizes)
    for path, value in changes.items():
        *parts, last = path.split(".")
        target = values
        for part in parts:
            target = target[part]
        target[last] = value
    return kind.from_dict(values)


def tiny_model(model_type: str, **changes: Any) -> Any:
    """Returns a random float32 model of this type; ``changes`` as for :func:`tiny_config`."""
    return random_model(tiny_config(model_type, **changes))


def random_model(config: Any) -> Any:
    """Returns a random float32 model of a config, the same at every call."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():  # some families start with gates at zero, behind which nothing would show
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def _shrunk(config: dict[str, Any], sizes: Sizes) -> dict[str, Any]:
    kinds = list(dict.fromkeys(config.get("layer_types") or ()))
    depth = max(2, len(kinds))  # every kind of layer once
    old_depth = next((config[key] for key in _DEPTH_KEYS if isinstance(config.get(key), int)), None)
    kept = {key: value for key, value in config.items() if key != "per_layer_config"}
    result = {key: _shrink(key, value, old_depth, depth, sizes) for key, value in kept.items()}
    if kinds:
        result["layer_types"] = (kinds * 2)[:depth]
        result |= {key: depth for key in _DEPTH_KEYS if key in result}
    if "no_rope_layers" in result:
        result["no_rope_layers"] = [1, 0][:depth]
    if "kv_lora_rank" in result and "num_key_value_heads" in result:
        result["num_key_value_heads"] = 4  # latent attention has as many as query heads
    return result


def _shrink(key: str, value: Any, old_depth: int | None, depth: int, sizes: Sizes) -> Any:
    if isinstance(value, dict) and (key.endswith("_config") or key == "rope_parameters"):
        return _shrunk(value, sizes)
    if re.fullmatch(r".*_token_(id|index)", key):
        last = sizes.vocabulary - 1
        return [min(item, last) for item in value] if isinstance(value, list) else _inside(value, last)
    if isinstance(value, list) and old_depth and len(value) == old_depth:
        return value[:depth]
    if isinstance(value, int | float) and not isinstance(value, bool) and value != 0:
        return next((small for names, small in recipe(sizes).items() if re.fullmatch(names, key)), value)
    return value


def _inside(token: int | None, last: int) -> int | None:
    return min(token, last) if isinstance(token, int) else token
