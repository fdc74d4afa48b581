"""What differs between GGUF architectures in the converter and in the loader of llama.cpp, as data.

Every line was found by running small random models: ``ropectl/runtimes/runs/llama.cpp.json``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropectl.gguf.architectures import ROPE_FREQS, YARN_BETAS_READ, YARN_LOG_MULTIPLIER_READ

_NO_TENSOR = f"does not convert: no {ROPE_FREQS} for this architecture"
_NOT_LOADED = f"does not load: its graph takes no {ROPE_FREQS}"


@dataclass(frozen=True)
class Traits:
    """How one architecture is converted and loaded; the defaults are those of most.

    Attributes:
        llama3: What becomes of a ``llama3`` block: True, converted to divisors; False, dropped; else why it stops.
        longrope: Whether the lists of a ``longrope`` block are written.
        only_types: Types of scaling that convert; None for all.
        keeps_scaling: Whether a type of scaling is written at all; ``llama3`` is none, but divisors.
        keeps_base: Whether the base is written.
        all_linear: Whether any factor is written as a linear one.
        reads_betas: Whether the loader reads ``beta_fast`` and ``beta_slow``.
        reads_mscales: Whether the attention factor is made of ``mscale_all_dim``.
        needs_mscale: Whether a yarn block without ``mscale_all_dim`` stops the converter.
        norm_after: Whether queries and keys are normed after the rotation, which takes out any attention factor.
        alpha: Whether ``dynamic`` is an NTK-aware base of its ``alpha``.
        latent: Whether the softmax scale of a latent attention is made of the attention factor, which has to be 1 then.
        proportional: Whether which pairs turn is converted to divisors, for the layers of full attention.
        windowed_base: Whether windowed layers take the base of the full ones.
        context_key: Key of the config that is declared as the context before ``max_position_embeddings`` is.
        context: Context that is declared whatever the config says [tokens].
    """

    llama3: bool | str = False
    longrope: bool = False
    only_types: tuple[str, ...] | None = None
    keeps_scaling: bool = True
    keeps_base: bool = True
    all_linear: bool = False
    reads_betas: bool = False
    reads_mscales: bool = False
    needs_mscale: bool = False
    norm_after: bool = False
    alpha: bool = False
    latent: bool = False
    proportional: bool = False
    windowed_base: bool = False
    context_key: str | None = None
    context: int | None = None


_TRAITS: dict[str, Traits] = {
    **dict.fromkeys(("llama", "arcee", "apertus"), Traits(llama3=True)),
    "cohere2": Traits(keeps_scaling=False),
    "chatglm": Traits(keeps_scaling=False, keeps_base=False, context_key="hidden_size"),
    "command-r": Traits(keeps_scaling=False, context_key="model_max_length"),
    **dict.fromkeys(("granite", "granitemoe"), Traits(llama3=_NO_TENSOR)),
    **dict.fromkeys(("hunyuan-dense", "hunyuan-moe"), Traits(alpha=True, norm_after=True)),
    "phi3": Traits(longrope=True),
    "deepseek2": Traits(latent=True),
    "exaone4": Traits(llama3=True),
    "exaone-moe": Traits(keeps_scaling=False, llama3=True),
    "falcon": Traits(keeps_scaling=False, keeps_base=False, context=2048),
    "gemma4": Traits(proportional=True),
    "llama4": Traits(llama3=True, norm_after=True),
    "mistral3": Traits(only_types=("yarn",), needs_mscale=True),
    "nemotron": Traits(all_linear=True),
    "olmo2": Traits(windowed_base=True),
    "smollm3": Traits(llama3=_NOT_LOADED),
    **dict.fromkeys(("gemma", "gemma2", "gptneox", "phi2", "stablelm"), Traits(keeps_scaling=False, keeps_base=False)),
}


def traits_of(architecture: str) -> Traits:
    """Returns how an architecture is converted and loaded."""
    return replace(
        _TRAITS.get(architecture, Traits()),
        reads_betas=architecture in YARN_BETAS_READ,
        reads_mscales=architecture in YARN_LOG_MULTIPLIER_READ,
    )
