"""Small GGUF files, written by the package ``gguf``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

HEAD_DIM, HEADS, THETA, LENGTH = 16, 4, 10_000.0, 512
VOCABULARY = 1100


def write_tiny(
    path: Path,
    architecture: str = "llama",
    keys: Mapping[str, Any] | None = None,
    vectors: Mapping[str, Sequence[float]] | None = None,
    remove: Sequence[str] = (),
) -> Path:
    """A model of one layer's worth of tensors, plain and quantized, with a vocabulary.

    Args:
        path: Where to write it.
        architecture: As llama.cpp names it.
        keys: More of the architecture's own keys; whole numbers as uint32, others as float32.
        vectors: More float32 tensors.
        remove: Own keys to leave out.
    """
    writer = gguf.GGUFWriter(path, architecture)
    own: dict[str, Any] = {
        "context_length": LENGTH,
        "block_count": 1,
        "embedding_length": HEAD_DIM * HEADS,
        "feed_forward_length": 128,
        "attention.head_count": HEADS,
        "attention.head_count_kv": 2,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": THETA,
        "rope.dimension_count": HEAD_DIM,
        **(keys or {}),
    }
    for key, value in own.items():
        if key not in remove:
            add(writer, key if key.startswith("split.") else f"{architecture}.{key}", value)
    writer.add_name("Tiny")
    writer.add_uint32("tokenizer.ggml.bos_token_id", 1)
    writer.add_token_list([f"token{i}" for i in range(VOCABULARY)])
    writer.add_token_scores([float(i) for i in range(VOCABULARY)])
    writer.add_token_types([1] * VOCABULARY)
    writer.add_array("general.tags", ["one", "two"])
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    generator = np.random.default_rng(0)
    for name, shape, kind in (
        ("token_embd.weight", (32, 64), gguf.GGMLQuantizationType.Q8_0),
        ("blk.0.attn_q.weight", (64, 64), gguf.GGMLQuantizationType.Q4_0),
        ("blk.0.attn_norm.weight", (63,), gguf.GGMLQuantizationType.F32),
        ("output_norm.weight", (7,), gguf.GGMLQuantizationType.F32),
    ):
        values = generator.standard_normal(shape, dtype=np.float32)
        data = gguf.quants.quantize(values, kind)
        writer.add_tensor(name, data, raw_dtype=kind)
    finish(writer, vectors or {})
    return path


def write_header(
    path: Path, architecture: str, keys: Mapping[str, Any], vectors: Mapping[str, Sequence[float]]
) -> Path:
    """A file of nothing but the architecture's own keys, and float32 vectors; its model is named as the file is."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(path.stem)
    for key, value in keys.items():
        add(writer, f"{architecture}.{key}", value)
    finish(writer, vectors)
    return path


def finish(writer: gguf.GGUFWriter, vectors: Mapping[str, Sequence[float]]) -> None:
    """Adds float32 vectors, and writes the file."""
    for name, vector in vectors.items():
        writer.add_tensor(name, np.array(vector, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    else:
        writer.add_float32(key, value)
