"""The rotary tables that a config's own class builds, without weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ropectl.errors import ConfigError
from ropectl.hf.model.model_class import bare_model
from ropectl.hf.model.rotary import rotary_module, text_config
from ropectl.printable import first_line
from ropectl.rope.frequencies import RopeFrequencies


def built_tables(
    config: Mapping[str, Any], layer_type: str | None, lengths: Sequence[int]
) -> dict[int, RopeFrequencies]:
    """Returns what the installed transformers rotates by, for sequences of several lengths [tokens].

    Args:
        config: The content of ``config.json``; its ``model_type`` is one of transformers'.
        layer_type: The layers that are meant, where each type has a table of its own.
        lengths: The lengths of sequences.

    Raises:
        ConfigError: If the classes of the config stop on it.
        UnsupportedModelError: If the model has no such table.
    """
    from transformers import CONFIG_MAPPING

    try:
        found = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(dict(config)))
    except Exception as error:  # a strict config raises many kinds
        raise ConfigError(f"{type(error).__name__}: {first_line(error)}") from error
    model = bare_model(found, torch.float32)
    module, section = rotary_module(model), text_config(model)
    name = f"{layer_type}_inv_freq" if layer_type else "inv_freq"
    kwargs = {"layer_type": layer_type} if layer_type else {}
    tables = {}
    for length in lengths:
        fresh = type(module)(config=section)  # one that saw another length may remember it
        found = fresh(torch.zeros(1, 2, 1), torch.tensor([[1, length - 1]]), **kwargs)
        tables[length] = _turned(found, getattr(fresh, name).numel())
    return tables


def _turned(found: Any, num_pairs: int) -> RopeFrequencies:
    """Returns by what a module turns, and stretches, from what it gives for position 1: some do not go by the table they hold.

    Args:
        found: cos and sin, each (..., 2, P or 2P), or e^(i angle), (..., 2, P); position 1 comes first.
        num_pairs: P.
    """
    if torch.is_tensor(found):
        first = found.reshape(-1, found.shape[-1])[0]
        cos, sin = first.real.double(), first.imag.double()
    else:
        cos, sin = (part.reshape(-1, part.shape[-1])[0].double() for part in found)
        if len(cos) == 2 * num_pairs:
            is_neighbours = torch.equal(cos[0::2], cos[1::2]) and torch.equal(sin[0::2], sin[1::2])
            cos, sin = (part[0::2] if is_neighbours else part[:num_pairs] for part in (cos, sin))
    return RopeFrequencies(tuple(torch.atan2(sin, cos).tolist()), float(torch.hypot(cos, sin)[0]))
