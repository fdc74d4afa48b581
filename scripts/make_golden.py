"""Writes reference vectors for the methods whose exact stock form transformers has, from transformers alone.

Nothing of ropectl's mathematics is used here. The other files in ``tests/golden`` hold vectors of
transformers and of the YaRN authors' code, made with those two and kept as they were made.

    python scripts/make_golden.py      # rewrites abf, longrope and ntk-by-parts
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"

#: rotary_dim, rope_theta, trained length, factor
GEOMETRIES = (
    (128, 10_000.0, 2048, 4.0),
    (64, 100_000.0, 8192, 4.0),
    (32, 10_000.0, 256, 8.0),
    (128, 500_000.0, 8192, 16.0),
    (96, 10_000.0, 4096, 2.5),
    (128, 10_000.0, 131_072, 4.0),
)


def reference(
    dim: int, length: int, factor: float, rope_parameters: dict[str, Any], long: bool
) -> tuple[list[float], float]:
    """Returns inverse frequencies and attention factor of transformers' own Llama module."""
    import torch

    config = LlamaConfig(
        hidden_size=dim, num_attention_heads=1, head_dim=dim,
        max_position_embeddings=round(factor * length), rope_parameters=rope_parameters,
    )  # fmt: skip
    module = LlamaRotaryEmbedding(config)
    if long:
        module(torch.zeros(1), torch.tensor([[length]]))  # the first position past the trained length
    return [float(f"{value:.9g}") for value in module.inv_freq.tolist()], float(module.attention_scaling)


def rows(name: str) -> list[dict[str, Any]]:
    """Returns the reference rows of one method over all geometries."""
    result = []
    for dim, theta, length, factor in GEOMETRIES:
        pairs = dim // 2
        geometry = {"rotary_dim": dim, "rope_theta": theta, "original_max_position_embeddings": length}
        if name == "abf":
            cases = [("abf:rope_theta=1e6", {"rope_type": "default", "rope_theta": 1e6}, None)]
        elif name == "ntk-by-parts":
            parameters = {
                "rope_type": "llama3", "rope_theta": theta, "factor": factor, "low_freq_factor": 1.0,
                "high_freq_factor": 32.0, "original_max_position_embeddings": length,
            }  # fmt: skip
            cases = [(f"ntk-by-parts:factor={factor:g}", parameters, None)]
        else:
            long_factor = [round(1 + (factor - 1) * i / (pairs - 1), 6) for i in range(pairs)]
            short_factor = [round(1 + 0.1 * i / pairs, 6) for i in range(pairs)]
            parameters = {
                "rope_type": "longrope", "rope_theta": theta, "factor": factor, "short_factor": short_factor,
                "long_factor": long_factor, "original_max_position_embeddings": length,
            }  # fmt: skip
            lists = [":".join(map(str, values)) for values in (long_factor, short_factor)]
            spec = f"longrope:factor={factor:g},long_factor={lists[0]},short_factor={lists[1]}"
            cases = [(spec, parameters, length), (spec, parameters, length + 1)]
        for spec, parameters, seq_len in cases:
            inv_freq, attention_factor = reference(dim, length, factor, parameters, long=seq_len == length + 1)
            source = f"transformers {parameters['rope_type']}"
            result.append(
                {
                    "spec": spec,
                    "source": source,
                    "geometry": geometry,
                    "seq_len": seq_len,
                    "inv_freq": inv_freq,
                    "attention_factor": attention_factor,
                }
            )
    return result


def main() -> None:
    for name in ("abf", "longrope", "ntk-by-parts"):
        lines = ",\n".join(" " + json.dumps(row) for row in rows(name))
        (GOLDEN / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
