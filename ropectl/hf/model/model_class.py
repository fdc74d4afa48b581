"""The stock class that runs a checkpoint: the causal one of its config, else the one that its config names.

Models that see or hear are no causal models to transformers; their checkpoints name the class to use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ropectl.errors import UnsupportedModelError


def stock_class(config: Any) -> Any:
    """Returns the class that runs a model with this config object.

    Raises:
        UnsupportedModelError: If transformers has none.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        return MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    found = _named(config.architectures)
    if found is None:
        named = ", ".join(config.architectures or ["none named"])
        raise UnsupportedModelError(
            f"transformers has no class that runs {type(config).__name__} as a language model (architectures: {named})."
        )
    return found


def loader(config: Mapping[str, Any]) -> Any:
    """Returns what loads a checkpoint with this content of ``config.json``, its own code included where it has any."""
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if config.get("model_type") in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or "auto_map" in config:
        return AutoModelForCausalLM
    return _named(config.get("architectures")) or AutoModelForCausalLM


def _named(architectures: Iterable[str] | None) -> Any:
    import transformers

    for name in architectures or ():
        found = getattr(transformers, str(name), None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    return None
