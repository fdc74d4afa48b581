"""Says what released model types are for which transformers has no class: another type renamed, or a relative of one.

``RENAMED`` is what vLLM 0.32 maps to its classes for the stock type, config and weights alike (``models/registry.py`` and
``transformers_utils/config.py``, read). The others keep their weights in another form, which no stock class loads.
"""

from __future__ import annotations

#: Model type -> the stock type that it is.
RENAMED = {"kimi_k2": "deepseek_v3", "telechat3": "llama"}

#: Model type -> what it is, as the end of a sentence.
RELATIVES = {
    "baichuan": "LLaMA with query, key and value in one tensor; the 13B model has ALiBi in place of rotary positions",
    "bailing_moe": "a mixture of experts of its own kind, with query, key and value in one tensor",
    "bailing_moe_v2": "a mixture of experts of its own kind, with query, key and value in one tensor",
    "chatglm": "the form of GLM before transformers had it; the published conversion of GLM-4-9B has model type 'glm'",
    "deepseek": "the first DeepSeek mixture of experts, before multi-head latent attention",
    "internlm": "LLaMA with biases in its attention",
    "internlm2": "LLaMA with query, key and value in one tensor; published conversions have model type 'llama'",
    "minicpm": "LLaMA with scaled embeddings and residuals",
    "minimax_text_01": "the form of MiniMax before transformers had it; published conversions have model type 'minimax'",
    "mixformer-sequential": "the form of Phi before transformers had it; published conversions have model type 'phi'",
    "phi-msft": "the form of Phi before transformers had it; published conversions have model type 'phi'",
    "qwen": "the first Qwen, whose own code changes the base with the length",
    "RefinedWeb": "the form of Falcon before transformers had it; published conversions have model type 'falcon'",
    "RefinedWebModel": "the form of Falcon before transformers had it; published conversions have model type 'falcon'",
    "stablelm_epoch": "the form of StableLM before transformers had it; published conversions have model type 'stablelm'",
}


def what_it_is(model_type: str) -> tuple[str, str]:
    """Returns what a model type is, as the end of a sentence, and what to do about it; empty where that is not known."""
    stock = RENAMED.get(model_type)
    if stock is None:
        return RELATIVES.get(model_type, ""), ""
    return f"{stock!r} under another name", f'To read it as that: write "model_type": "{stock}" in config.json.'
