"""A tiny random model that llama.cpp loads, to see which keys of a file it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tests.gguf.gguf_files import add, finish

HIDDEN, HEADS, WIDE, VOCABULARY, CONTEXT = 64, 4, 128, 320, 512


def write_loadable(
    path: Path, architecture: str, keys: Mapping[str, Any], vectors: Mapping[str, Sequence[float]]
) -> Path:
    """One layer of Llama or Qwen2 in float32, its weights large enough that positions matter."""
    writer = gguf.GGUFWriter(path, architecture)
    own: dict[str, Any] = {
        "context_length": CONTEXT,
        "block_count": 1,
        "embedding_length": HIDDEN,
        "feed_forward_length": WIDE,
        "attention.head_count": HEADS,
        "attention.head_count_kv": HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10_000.0,
        "rope.dimension_count": HIDDEN // HEADS,
        "vocab_size": VOCABULARY,
        **keys,
    }
    for key, value in own.items():
        add(writer, f"{architecture}.{key}", value)
    add_vocabulary(writer)
    generator = np.random.default_rng(0)
    for name, shape in shapes(architecture).items():
        writer.add_tensor(name, 0.4 * generator.standard_normal(shape, dtype=np.float32))
    finish(writer, vectors)
    return path


def add_vocabulary(writer: gguf.GGUFWriter) -> None:
    """Three special tokens, all bytes, and filling."""
    num_words = VOCABULARY - 259
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *(f"word{i}" for i in range(num_words))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * num_words)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def shapes(architecture: str) -> dict[str, tuple[int, ...]]:
    """Tensor names and shapes."""
    layer = {
        **{f"attn_{name}.weight": (HIDDEN, HIDDEN) for name in ("q", "k", "v", "output")},
        **{f"{name}_norm.weight": (HIDDEN,) for name in ("attn", "ffn")},
        **{f"ffn_{name}.weight": (WIDE, HIDDEN) for name in ("gate", "up")},
        "ffn_down.weight": (HIDDEN, WIDE),
    }
    if architecture == "qwen2":
        layer |= {f"attn_{name}.bias": (HIDDEN,) for name in ("q", "k", "v")}
    return {
        "token_embd.weight": (VOCABULARY, HIDDEN),
        "output_norm.weight": (HIDDEN,),
        "output.weight": (VOCABULARY, HIDDEN),
        **{f"blk.0.{name}": shape for name, shape in layer.items()},
    }
