"""Finds a live model's rotary tables, reads them, and compares them with what a method computes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ropectl.errors import PatchError, UnsupportedModelError
from ropectl.hf.config.families import NON_TEXT_PARTS, family_of
from ropectl.hf.config.layers import choose_layer_type
from ropectl.hf.model.softmax_scale import check_scales
from ropectl.hf.refused_types import refuse_model_type
from ropectl.rope.frequencies import RopeFrequencies

#: Largest accepted relative difference between a float32 buffer and the float64 formula. The float32
#: arithmetic of transformers' llama3 is off by up to 6e-6 (head_dim 80, factor 128), all else by less than
#: 2e-6; another method, base or length differs by far more.
INV_FREQ_TOLERANCE = 1e-5
ATTENTION_FACTOR_TOLERANCE = 1e-6

_TABLE = "inv_freq"


def text_config(model: nn.Module) -> Any:
    """Returns the config object that the model's text part reads."""
    config: Any = model.config
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


def text_config_values(model: nn.Module) -> dict[str, Any]:
    """Returns the text part's config as a dictionary."""
    values: dict[str, Any] = text_config(model).to_dict()
    return values


def rotary_modules(model: nn.Module) -> list[Any]:
    """Returns the modules that turn positions into cos and sin for the text model, all with the same table.

    Most families have one for the whole model; a few have one in every attention layer.

    Raises:
        UnsupportedModelError: If there is none, or several that are not copies of each other.
    """
    kind, model_type = type(model).__name__, getattr(text_config(model), "model_type", None)
    refuse_model_type({"model_type": model_type})
    found: dict[int, tuple[str, nn.Module]] = {}
    for name, module in model.named_modules():
        if "RotaryEmbedding" not in type(module).__name__ or any(part in name for part in NON_TEXT_PARTS):
            continue
        if any(attribute.endswith(f"original_{_TABLE}") for attribute in (*vars(module), *module._buffers)):
            found[id(module)] = (name, module)
    if not found:
        raise UnsupportedModelError(
            f"{kind} has no rotary position embedding of the kind that transformers 5 rebuilds."
        )
    (first_name, first), *others = found.values()
    if not all(_is_layer_part(first_name, name) and _same_tables(first, module) for name, module in others):
        names = ", ".join(sorted(name for name, _ in found.values()))
        raise UnsupportedModelError(f"{kind} has several rotary modules ({names}); which one to scale is not known.")
    return [first, *(module for _, module in others)]


def rotary_module(model: nn.Module) -> Any:
    """Returns the model's rotary module; the first, where every layer has a copy of its own.

    Raises:
        UnsupportedModelError: See :func:`rotary_modules`.
    """
    return rotary_modules(model)[0]


def _is_layer_part(left: str, right: str) -> bool:
    """Returns whether two module names differ by the number of a layer only."""
    parts = list(zip(left.split("."), right.split("."), strict=False))
    different = [(one, other) for one, other in parts if one != other]
    return left.count(".") == right.count(".") and all(a.isdigit() and b.isdigit() for a, b in different)


def _same_tables(left: nn.Module, right: nn.Module) -> bool:
    one, other = dict(left.named_buffers()), dict(right.named_buffers())
    if type(left) is not type(right) or one.keys() != other.keys():
        return False
    return all(tensor.is_meta or torch.equal(tensor, other[name]) for name, tensor in one.items())


def table_names(module: nn.Module) -> list[str]:
    """Returns the names of a rotary module's tables: ``inv_freq``, or one for every layer type."""
    return [name for name in module._buffers if name.endswith(_TABLE) and not name.endswith(f"original_{_TABLE}")]


def verify_rope(model: nn.Module, expected: RopeFrequencies, layers: str | None = None) -> float:
    """Checks that the live rotary module holds ``expected``; returns the largest relative difference of a frequency.

    To be called after everything that may touch buffers: loading, casting, moving, wrapping. It finds
    buffers that were rounded to half precision or left uninitialised, which raise no error on their own.

    Args:
        model: A transformers model.
        expected: What its rotary table has to be.
        layers: The layer type that is meant, where each has its own table; by default the one that sees all.

    Raises:
        PatchError: Naming the first difference.
    """
    config = text_config(model)
    layer_type = choose_layer_type(text_config_values(model), layers)
    prefix = f"{layer_type}_" if layer_type else ""
    largest = 0.0
    for module in rotary_modules(model):
        if not hasattr(module, prefix + _TABLE):
            raise PatchError(
                f"The model holds no rotary table named {prefix}{_TABLE}: {', '.join(table_names(module))}."
            )
        largest = max(largest, _check_table(getattr(module, prefix + _TABLE), expected))
        _check_factor(attention_factor(module, config, prefix), expected)
    check_scales(model)
    return largest


def _check_table(inv_freq: torch.Tensor, expected: RopeFrequencies) -> float:
    if inv_freq.dtype != torch.float32:
        raise PatchError(
            f"The rotary frequencies are {inv_freq.dtype}, not float32: positions past a few hundred tokens would be wrong.",
            "Load with dtype= instead of casting the model, or apply the method after the cast.",
        )
    if inv_freq.numel() != len(expected.inv_freq):
        raise PatchError(f"The model rotates {inv_freq.numel()} pairs, the method computed {len(expected.inv_freq)}.")
    actual = inv_freq.detach().double().cpu()
    wanted = torch.tensor(expected.inv_freq, dtype=torch.float64)
    error = torch.where(wanted == 0, actual.abs(), (actual - wanted).abs() / wanted)
    worst = int(error.nan_to_num(nan=torch.inf).argmax())
    if not error[worst] <= INV_FREQ_TOLERANCE:
        raise PatchError(
            f"Rotary pair {worst} turns by {actual[worst]:.9g} radians a token, but the method computes {wanted[worst]:.9g} "
            f"(relative difference {error[worst]:.2g}, allowed {INV_FREQ_TOLERANCE:g})."
        )
    return float(error[worst])


def _check_factor(actual: float, expected: RopeFrequencies) -> None:
    if not abs(actual - expected.attention_factor) <= ATTENTION_FACTOR_TOLERANCE:
        raise PatchError(
            f"The model's attention factor is {actual:.9g}, but the method computes {expected.attention_factor:.9g}."
        )


def attention_factor(module: Any, config: Any, prefix: str) -> float:
    """Returns what cos and sin are multiplied by; some families take it from the block at every call."""
    keys = family_of({"model_type": getattr(config, "model_type", None)}).attention_keys
    block = config.rope_parameters
    if keys and block["rope_type"] != "default":
        return float(block[keys[0]])
    return float(getattr(module, f"{prefix}attention_scaling"))
