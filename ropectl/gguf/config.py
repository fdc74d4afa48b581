"""Reads the config of a GGUF file as llama.cpp does, rotary scaling included.

transformers takes base and length from a GGUF file and drops the scaling. Here the scaling keys and the
divisor tensor become a ``rope_scaling`` block, so that ``inspect`` describes what llama.cpp computes:

- angles are position * theta_i / f_i, f from ``rope_freqs.weight``, then divided by ``rope.scaling.factor``
  unless the type is ``none`` (a missing type means ``linear``);
- with type ``yarn`` the kernel applies 0.1 ln s + 1 itself, and ``rope.scaling.attn_factor`` multiplies that;
  with any other type that key alone multiplies cos and sin. The converter's ``yarn_attn_factor`` is overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.gguf.architectures import (
    DIVISOR_TENSORS,
    MODEL_TYPES,
    ROPE_FREQS,
    ROPE_LONG,
    ROPE_SHORT,
    YARN_BETAS_READ,
    YARN_LOG_MULTIPLIER_READ,
)
from ropectl.gguf.header import GgufHeader, SkippedList, read_floats, read_header
from ropectl.gguf.layer_patterns import rotates, with_layer_pattern
from ropectl.gguf.llama3 import recognise_llama3
from ropectl.rope.frequencies import yarn_attention_factor

#: llama.cpp's base for a file that does not say one.
DEFAULT_ROPE_THETA = 10_000.0

_PLAIN_KEYS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
}
_TOKEN_KEYS = {
    "tokenizer.ggml.bos_token_id": "bos_token_id",
    "tokenizer.ggml.eos_token_id": "eos_token_id",
    "tokenizer.ggml.padding_token_id": "pad_token_id",
}


def read_gguf_config(path: Path) -> dict[str, Any]:
    """Returns what a GGUF file says, as the content of a ``config.json``: in the dialect of transformers 4, or of transformers 5
    where layer types have rotary tables of their own.

    Only the header is read: no weight, no token list, neither torch nor transformers.

    Raises:
        ConfigError: If the file is damaged.
        UnsupportedModelError: If no config can express its scaling.
    """
    header = read_header(path)
    config: dict[str, Any] = {"model_type": _model_type(header)}
    for key, name in _PLAIN_KEYS.items():
        value = header.own(key)
        if isinstance(value, list):  # per layer; layers without attention have none
            value = max(value, default=0)
        if value is not None and not isinstance(value, SkippedList):
            config[name] = value
    config |= {name: header.keys[key] for key, name in _TOKEN_KEYS.items() if key in header.keys}
    tokens = header.keys.get("tokenizer.ggml.tokens")
    if "vocab_size" not in config and isinstance(tokens, SkippedList | list):
        config["vocab_size"] = tokens.length if isinstance(tokens, SkippedList) else len(tokens)
    if not rotates(header):  # learned positions or none, and layers without attention have no heads
        return {name: value for name, value in config.items() if value != 0}
    config |= _dimensions(header, config)
    config["rope_theta"] = header.own("rope.freq_base", DEFAULT_ROPE_THETA)
    rotary_dim = header.own("rope.dimension_count") or config.get("head_dim", 0)
    config["rope_scaling"] = _scaling(path, header, config["rope_theta"], rotary_dim)
    return with_layer_pattern(config, header)


def _model_type(header: GgufHeader) -> str:
    if header.architecture == "llama" and "mistral" in str(header.keys.get("general.name", "")).lower():
        return "mistral"  # as transformers does
    return MODEL_TYPES.get(header.architecture, header.architecture)


def _dimensions(header: GgufHeader, config: dict[str, Any]) -> dict[str, Any]:
    """Returns the width of a head and the part that rotates; with latent attention that part is a head of its own."""
    rotary = header.own("rope.dimension_count")
    if header.own("attention.kv_lora_rank") is not None:
        return {"head_dim": rotary, "qk_rope_head_dim": rotary, "kv_lora_rank": header.own("attention.kv_lora_rank")}
    heads = config.get("num_attention_heads")
    head_dim = header.own("attention.key_length") or (config.get("hidden_size", 0) // heads if heads else None)
    if not head_dim:
        return {}
    if rotary in (None, head_dim):
        return {"head_dim": head_dim}
    share = rotary / head_dim
    if int(head_dim * share) < rotary:  # the division rounded down
        share = math.nextafter(share, 1.0)
    return {"head_dim": head_dim, "partial_rotary_factor": share}


def _scaling(path: Path, header: GgufHeader, rope_theta: float, rotary_dim: int) -> dict[str, Any] | None:
    """Returns the scaling block; None where nothing is scaled and the trained length is the declared one."""
    kind = header.own("rope.scaling.type", "linear")
    factor = header.own("rope.scaling.factor") or header.own("rope.scale_linear") or 1.0
    factor = 1.0 if kind == "none" else factor
    original = header.own("rope.scaling.original_context_length")
    attention = header.own("rope.scaling.attn_factor", 1.0)
    block: dict[str, Any] = {} if original is None else {"original_max_position_embeddings": original}
    if (beta := header.own("attention.temperature_scale")) is not None:
        block["llama_4_scaling_beta"] = beta
    short, long = _divisors(path, header)
    if kind == "yarn":
        if long is not None:
            names = ", ".join(tensor.name for tensor in header.tensors if tensor.name in DIVISOR_TENSORS)
            raise UnsupportedModelError(
                f"{path.name} scales with YaRN on top of divisors ({names}); no config can express that."
            )
        return {**_declared_length(header), **block, **_yarn(header, factor, attention)}
    if long is None and attention == 1.0:
        scaled = {"rope_type": "linear", "factor": factor} if factor != 1.0 else {"rope_type": "default"}
        return {**block, **scaled} if block or factor != 1.0 else None
    if long is None or short is None:
        long = short = (1.0,) * (rotary_dim // 2)
    if short != long:
        block = {**_declared_length(header), **block}
    elif attention == factor == 1.0:
        known = recognise_llama3(long, rope_theta, original)
        if known is not None:
            return {**block, **known}
    lists = {"short_factor": [f * factor for f in short], "long_factor": [f * factor for f in long]}
    return {**block, "rope_type": "longrope", **lists, "attention_factor": attention}


def _declared_length(header: GgufHeader) -> dict[str, Any]:
    """Returns the trained length that llama.cpp assumes where the file has no key for it."""
    length = header.own("context_length")
    return {} if length is None else {"original_max_position_embeddings": length}


def _yarn(header: GgufHeader, factor: float, attention: float) -> dict[str, Any]:
    block: dict[str, Any] = {"rope_type": "yarn", "factor": factor}
    if header.architecture in YARN_BETAS_READ:
        for name in ("beta_fast", "beta_slow"):
            value = header.own(f"rope.scaling.yarn_{name}")
            block |= {} if value is None else {name: value}
    if header.architecture in YARN_LOG_MULTIPLIER_READ and (log := header.own("rope.scaling.yarn_log_multiplier")):
        attention /= yarn_attention_factor(factor, log)
    if attention != 1.0:
        # seven digits: what float32 keeps, so that a factor of 1 reads as 1
        block["attention_factor"] = float(f"{attention * yarn_attention_factor(factor):.7g}")
    return block


def _divisors(path: Path, header: GgufHeader) -> tuple[Sequence[float] | None, Sequence[float] | None]:
    """Returns the divisors for short and for long contexts."""
    one = read_floats(path, header, ROPE_FREQS)
    if one is not None:
        return one, one
    long, short = read_floats(path, header, ROPE_LONG), read_floats(path, header, ROPE_SHORT)
    return short or long, long or short
