"""The rotary tables that a config's own class builds, without weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ropectl.errors import ConfigError
from ropectl.hf.config.families import family_of
from ropectl.hf.model.model_class import bare_model
from ropectl.hf.model.rotary import attention_factor, rotary_module, text_config
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
    family = family_of({"model_type": getattr(section, "model_type", None)})
    prefix = f"{layer_type}_" if layer_type else ""
    tables = {}
    for length in lengths:
        fresh = type(module)(config=section)  # one that saw another length may remember it
        positions = torch.tensor([[0, length - 1]])
        if not family.static_longrope:  # which rotates by the short list, whatever it stores for the next call
            fresh(torch.zeros(1, 2, 1), positions, **({"layer_type": layer_type} if layer_type else {}))
        inv_freq = tuple(getattr(fresh, f"{prefix}inv_freq").double().tolist())
        tables[length] = RopeFrequencies(inv_freq, attention_factor(fresh, section, prefix))
    return tables
