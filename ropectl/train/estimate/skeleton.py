"""Builds models without their weights, prepared by a strategy, and counts their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ropectl.errors import ConfigError
from ropectl.hf.model.loading import resolve_dtype
from ropectl.hf.model.model_class import bare_model
from ropectl.hf.model_shape import ModelShape
from ropectl.memory import is_out_of_memory
from ropectl.train.estimate.memory import Weights
from ropectl.train.strategies.strategy import Strategy


def held_dtype(dtype: str, strategy: str, device_type: str, config: Mapping[str, Any]) -> torch.dtype:
    """Returns the type in which a run holds weights that it does not train.

    Args:
        dtype: The setting.
        strategy: Name of the strategy.
        device_type: Where weights are loaded.
        config: The content of the checkpoint's ``config.json``.
    """
    if dtype == "auto" and strategy == "full":
        dtype = "float32"  # as in a run: updates of all weights need it
    result: torch.dtype = getattr(torch, resolve_dtype(dtype, device_type, config) or "float32")
    return result


def build(config: Any, strategy: Strategy, dtype: torch.dtype, device: Any = "meta", remote_code: bool = False) -> Any:
    """Returns a model with random weights, prepared by a strategy.

    Args:
        config: A transformers config.
        strategy: Decides what is trained.
        dtype: Type of the weights.
        device: Where it is made; on ``meta`` it takes no memory.
        remote_code: Whether the class comes with the checkpoint.

    Raises:
        ConfigError: If its class cannot be built, or the strategy cannot train it.
    """
    model = bare_model(config, dtype, device, remote_code)
    try:
        strategy.prepare(model)
    except Exception as error:  # peft may raise anything for a model it does not know
        if isinstance(error, ConfigError) or is_out_of_memory(error):
            raise
        raise ConfigError(
            f"strategy = {strategy.settings.strategy} is not possible for {type(model).__name__}: {error}"
        ) from error
    return model


def decoder_layers(model: Any, num_layers: int) -> list[Any]:
    """Returns the decoder layers of a model; none where they are not a plain list."""
    lists = (module for module in model.get_decoder().modules() if isinstance(module, nn.ModuleList))
    return next((list(found) for found in lists if len(found) == num_layers), [])


def count_weights(model: Any, shape: ModelShape) -> Weights:
    """Returns counts and bytes of a prepared model's weights.

    Args:
        model: A model that a strategy has prepared; it may be on the meta device.
        shape: Its sizes.
    """
    parameters = list(model.parameters())  # tied ones once
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    layers = decoder_layers(model, shape.num_layers)
    outside = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    outside |= {id(p) for p in model.get_output_embeddings().parameters()}
    in_layers = {
        id(p): p.numel() * (shape.active_experts if ".experts." in name and "shared" not in name else 1.0)
        for layer in layers or [model]  # where layers are not a plain list: all but embeddings and head
        for name, p in layer.named_parameters()
        if id(p) not in outside
    }
    held_in_layers = _bytes(p for p in parameters if id(p) in in_layers)
    layer_bytes = [_bytes(layer.parameters()) for layer in layers] or [held_in_layers // shape.num_layers]
    return Weights(
        total=sum(p.numel() for p in parameters),
        trained=sum(p.numel() for p in trained),
        parts=_trained_parts(model),
        layers=round(sum(in_layers.values())),
        layers_trained=round(sum(in_layers.get(id(p), 0.0) for p in trained)),
        num_bytes=_bytes(parameters),
        trained_bytes=_bytes(trained),
        cast=sum(p.numel() for p in _multiplied(model) if p.element_size() > 2),
        layer_bytes=max(layer_bytes),
        root_bytes=_bytes(parameters) - held_in_layers,
        residual_bytes=_embedding_bytes(model),
    )


def _bytes(parameters: Any) -> int:
    return sum(p.numel() * p.element_size() for p in parameters)


def _trained_parts(model: Any) -> dict[str, int]:
    parts: dict[str, int] = {}
    seen: set[int] = set()
    head = model.get_output_embeddings()
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            if not parameter.requires_grad or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if "lora_" in f"{path}.{name}":
                kind = "LoRA matrices"
            elif isinstance(module, nn.Embedding) or parameter is head.weight:
                kind = "embeddings"
            else:
                kind = "norms and biases" if parameter.ndim == 1 else "matrices"
            parts[kind] = parts.get(kind, 0) + parameter.numel()
    return parts


def _multiplied(model: Any) -> list[Any]:
    """Returns the weights of matrix products, each once; autocast copies them."""
    linear = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    experts = [p for p in model.parameters() if p.ndim == 3]
    return list({id(p): p for p in (*linear, *experts)}.values())


def _embedding_bytes(model: Any) -> int:
    parameters = list(model.get_input_embeddings().parameters())
    used = [p for p in parameters if p.requires_grad] or parameters
    return int(used[0].element_size())
