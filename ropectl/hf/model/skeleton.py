"""Models without their weights: on torch's meta device to be counted, and cut to a layer or two to be timed."""

from __future__ import annotations

import copy
from typing import Any

import torch

from ropectl.errors import ConfigError
from ropectl.hf.model.model_class import stock_class
from ropectl.memory import is_out_of_memory


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
        raise ConfigError(f"The model cannot be built from its config: {error}") from error


def cut(config: Any, num_layers: int) -> Any:
    """Returns a config of fewer layers; lists that speak of every layer are cut too."""
    config = copy.deepcopy(config)
    text = config.get_text_config(decoder=True)
    depth = text.num_hidden_layers
    for name, value in list(vars(text).items()):
        if isinstance(value, list) and len(value) == depth:
            setattr(text, name, value[:num_layers])
    text.num_hidden_layers = num_layers
    return config
