"""Finds the stock class that runs a checkpoint, and builds models of it without their weights.

The class is the causal one of the config, else the one that the config names: to transformers, models that see or hear
are not causal ones. Models without weights are made on torch's meta device to be counted, or cut to a layer or two to be timed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.class_defaults import load_hint
from ropectl.memory import is_out_of_memory
from ropectl.printable import first_line


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


def bare_model(config: Any, dtype: torch.dtype, device: Any = "meta", remote_code: bool = False) -> Any:
    """Returns a model of a config with random weights.

    Args:
        config: A transformers config.
        dtype: Type of the weights.
        device: Where it is made; on ``meta`` it takes no memory.
        remote_code: Whether the class comes with the checkpoint.

    Raises:
        ConfigError: If its class cannot be built.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    config = copy.deepcopy(config)
    try:
        with torch.device(device):
            if remote_code or type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
                from transformers import AutoModelForCausalLM

                return AutoModelForCausalLM.from_config(
                    config, dtype=dtype, trust_remote_code=remote_code, attn_implementation=config._attn_implementation
                )
            return stock_class(config)(config).to(dtype)
    except Exception as error:  # a model's constructor may raise anything over a config it was not made for
        if isinstance(error, ConfigError) or is_out_of_memory(error):
            raise
        raise ConfigError(
            f"The model cannot be built from its config: {first_line(error)}", load_hint(str(error))
        ) from error


def cut(config: Any, num_layers: int) -> Any:
    """Returns a config of fewer layers; lists with one entry per layer are cut too."""
    config = copy.deepcopy(config)
    text = config.get_text_config(decoder=True)
    depth = text.num_hidden_layers
    for name, value in list(vars(text).items()):
        if isinstance(value, list) and len(value) == depth:
            setattr(text, name, value[:num_layers])
    text.num_hidden_layers = num_layers
    return config
