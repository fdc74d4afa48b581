"""Holds what llama.cpp makes of the rotary keys of each GGUF architecture, as data.

Read in llama.cpp as llama-cpp-python 0.3.36 vendors it (``src/models/*.cpp``): an architecture is listed with
a factor tensor where its loader creates that tensor *and* its graph passes it to the rotation. Elsewhere a
file with such a tensor does not load ("wrong number of tensors"), or loads and ignores it.
"""

from __future__ import annotations

ROPE_FREQS = "rope_freqs.weight"
ROPE_LONG, ROPE_SHORT = "rope_factors_long.weight", "rope_factors_short.weight"

#: Every tensor that holds divisors, whatever the architecture.
DIVISOR_TENSORS = (ROPE_FREQS, ROPE_LONG, ROPE_SHORT)

_ONE_LIST = (
    *("llama", "llama-embed", "llama4", "deci", "mistral3", "minicpm", "arcee", "apertus", "nanbeige", "step35"),
    *("granite", "granitemoe", "granitehybrid", "granite_swa", "exaone", "exaone4", "exaone-moe"),
)
#: These take two lists and choose by the length of the context; equal lists make the choice irrelevant.
_TWO_LISTS = ("phi3", "phimoe", "minicpm3")

#: Architecture -> tensors that must hold the divisors so that its graph applies them at every length.
DIVISOR_TENSORS_READ: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ONE_LIST, (ROPE_FREQS,)),
    **dict.fromkeys(_TWO_LISTS, (ROPE_LONG, ROPE_SHORT)),
}

#: Architectures that read ``rope.scaling.yarn_beta_fast`` and ``_slow``; the others use 32 and 1 whatever the file says.
YARN_BETAS_READ = ("grok", "mistral3")

#: Architectures that read ``rope.scaling.yarn_log_multiplier``, the ``mscale_all_dim`` of a config.
YARN_LOG_MULTIPLIER_READ = ("mistral3", "deepseek2", "deepseek32")

_SOFTMAX_SCALE = "llama.cpp makes the softmax scale of its latent attention from the same keys"

#: Architectures whose files are not patched -> reason.
NOT_PATCHED = {
    "deepseek2": _SOFTMAX_SCALE,
    "deepseek32": _SOFTMAX_SCALE,
    "gemma4": "its rope_freqs.weight says which pairs of the full-attention layers rotate at all, and would be lost",
}

#: Base of the sliding-window layers where the file does not say one.
LOCAL_ROPE_THETA = {"gemma3": 10_000.0, "gemma3n": 10_000.0}

#: Architecture -> ``model_type`` of transformers, where the names differ.
MODEL_TYPES = {
    "command-r": "cohere",
    "deepseek2": "deepseek_v2",
    "ernie4_5-moe": "ernie4_5_moe",
    "exaone-moe": "exaone_moe",
    "falcon-h1": "falcon_h1",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "glm4moe": "glm4_moe",
    "gpt-oss": "gpt_oss",
    "gptneox": "gpt_neox",
    "granitehybrid": "granitemoehybrid",
    "hunyuan-dense": "hunyuan_v1_dense",
    "hunyuan-moe": "hunyuan_v1_moe",
    "llama4": "llama4_text",
    "minimax-m2": "minimax_m2",
    "mistral3": "ministral3",
    "phi2": "phi",
    "qwen2moe": "qwen2_moe",
    "qwen2vl": "qwen2_vl",
    "qwen35": "qwen3_5",
    "qwen35moe": "qwen3_5_moe",
    "qwen3moe": "qwen3_moe",
    "qwen3next": "qwen3_next",
}
