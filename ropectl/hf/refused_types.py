"""Holds the model types that are not scaled: those that rotate nothing, and those whose rotations a patch cannot reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.errors import UnsupportedModelError

#: Families that have rotary positions and are not scaled, and why. Model type -> reason.
REFUSED_MODEL_TYPES = {
    "blt": "it joins four models, each with rotary positions of its own over bytes or patches",
    "codegen": "it computes its rotations once when it is built, from no config that a patch could write",
    "csm": "it joins two models, each with its own rotary positions",
    "deepseek_v4": "its layers hold tables of their own for compressed and for plain positions",
    "dia": "its encoder and its decoder have their own rotary positions",
    "gemma4_assistant": "it drafts on the keys of a Gemma 4, and has to rotate as that does",
    "gemma4_unified_assistant": "it drafts on the keys of a Gemma 4, and has to rotate as that does",
    "gptj": "it computes its rotations once when it is built, from no config that a patch could write",
    "granite_swa": "it holds one table for every base, and the base of each layer names the table",
    "granitemoe_swa": "it holds one table for every base, and the base of each layer names the table",
    "molmo2": "it holds a scaled and an unscaled table, and the config says which layer reads which",
    **dict.fromkeys(
        ("qwen2_5_omni", "qwen3_omni_moe"), "it joins a thinker and a talker, each with its own rotary positions"
    ),
    "recurrent_gemma": "its attention sees a fixed window and its config says no trained length: there is nothing to extend",
    "roformer": "it has a table of sines for every position up to a fixed length",
}

#: Causal families whose classes rotate nothing. The files of some, such as Nemotron-H and Kimi Linear, say rotary keys all
#: the same.
WITHOUT_ROTATION = (
    *("bart", "bert", "bert-generation", "big_bird", "bigbird_pegasus", "biogpt", "blenderbot", "blenderbot-small", "bloom"),
    *("camembert", "cpmant", "ctrl", "data2vec-text", "electra", "ernie", "falcon_mamba", "git", "gpt-sw3", "gpt2"),
    *("gpt_bigcode", "gpt_neo", "inkling2_loop_text", "inkling2_text", "inkling_text", "jamba", "kimi_linear", "mamba"),
    *("mamba2", "marian", "mbart", "megatron-bert", "mpt", "musicgen", "musicgen_melody", "mvp", "nemotron_h", "openai-gpt"),
    *("opt", "pegasus", "plbart", "prophetnet", "reformer", "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "rwkv"),
    *("trocr", "whisper", "xglm", "xlm", "xlm-roberta", "xlm-roberta-xl", "xlnet", "xlstm", "xmod", "zamba"),
)  # fmt: skip


def refuse_model_type(section: Mapping[str, Any]) -> None:
    """Refuses a config of a model type that is not scaled, whatever else the file says.

    Args:
        section: The config's text part.

    Raises:
        UnsupportedModelError: With the reason.
    """
    name = str(section.get("model_type"))
    if name in WITHOUT_ROTATION:
        raise UnsupportedModelError(
            f"Models of type {name!r} have no rotary positions: their classes rotate nothing, whatever the config says of rope_theta."
        )
    if reason := REFUSED_MODEL_TYPES.get(name):
        raise UnsupportedModelError(f"Models of type {name!r} are not supported: {reason}.")
