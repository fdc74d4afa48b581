"""Keeps the softmax scale of multi-head latent attention, which its constructor takes from the scaling block, up to date.

DeepSeek's layers multiply 1/sqrt(d) by (0.1 * mscale_all_dim * ln s + 1)^2 when they are built. A layer whose
block changes later keeps the old scale unless it is given the one that a new layer would have.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ropectl.errors import PatchError
from ropectl.hf.config.families import LATENT_ATTENTION_KEY

_TOLERANCE = 1e-9


def latent_layers(model: nn.Module) -> list[Any]:
    """Returns the attention layers whose softmax scale depends on the scaling block; empty for most models."""
    wanted = ("scaling", "layer_idx", "config", LATENT_ATTENTION_KEY)
    return [module for module in model.modules() if all(hasattr(module, name) for name in wanted)]


def built_scale(layer: Any) -> float:
    """Returns the softmax scale that a new layer of this kind takes from the config in force."""
    with torch.device("meta"):  # no memory, no numbers: only the constructor's arithmetic is wanted
        return float(type(layer)(config=layer.config, layer_idx=layer.layer_idx).scaling)


def set_scales(model: nn.Module) -> None:
    """Gives every latent attention layer the softmax scale of the config in force."""
    for layer in latent_layers(model):
        layer.scaling = built_scale(layer)


def check_scales(model: nn.Module) -> None:
    """Checks that every latent attention layer has the softmax scale of the config in force.

    Raises:
        PatchError: Naming the first layer that has another.
    """
    for layer in latent_layers(model):
        wanted = built_scale(layer)
        if not abs(layer.scaling - wanted) <= _TOLERANCE:
            raise PatchError(
                f"Attention layer {layer.layer_idx} multiplies its scores by {layer.scaling:.9g}, but the config makes {wanted:.9g}."
            )
