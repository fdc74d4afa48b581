"""Compares the tensors of a checkpoint with its config: every layer is there, and every tensor has the shape that the sizes make.

Known are the tensors of families whose layers are Llama's. Those of others only transformers' own class knows: see
:func:`ropectl.hf.model.loading.check_loadable`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.hf.config.families import SELF_CONTAINED_CONFIGS
from ropectl.hf.config.source import ModelSource
from ropectl.hf.tensors.safetensors_file import StoredTensor
from ropectl.hf.tensors.shards import INDEX, tensors_of
from ropectl.hf.tensors.stale_tables import stored_table_note
from ropectl.names import shown_names
from ropectl.printable import shorten

_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.(.+)$")

_HEADS, _KEY_HEADS = "num_attention_heads * head_dim", "num_key_value_heads * head_dim"

#: End of a tensor's name -> the sizes of the config that make its shape.
_SHAPES: dict[str, tuple[str, ...]] = {
    "embed_tokens.weight": ("vocab_size", "hidden_size"),
    "lm_head.weight": ("vocab_size", "hidden_size"),
    "self_attn.q_proj.weight": (_HEADS, "hidden_size"),
    "self_attn.k_proj.weight": (_KEY_HEADS, "hidden_size"),
    "self_attn.v_proj.weight": (_KEY_HEADS, "hidden_size"),
    "self_attn.o_proj.weight": ("hidden_size", _HEADS),
    "mlp.gate_proj.weight": ("intermediate_size", "hidden_size"),
    "mlp.up_proj.weight": ("intermediate_size", "hidden_size"),
    "mlp.down_proj.weight": ("hidden_size", "intermediate_size"),
    "input_layernorm.weight": ("hidden_size",),
    "post_attention_layernorm.weight": ("hidden_size",),
    "model.norm.weight": ("hidden_size",),
}

#: The format's names of the types of weights that are not quantised.
_FLOATS = ("F64", "F32", "F16", "BF16")

#: Tensors without which a layer of these families computes nothing.
_IN_EVERY_LAYER = tuple(f"self_attn.{part}_proj.weight" for part in "qkvo")


def check_tensors(source: ModelSource, complete: bool = True) -> list[str]:
    """Compares the tensors of a local checkpoint with its config; returns notes on them.

    A checkpoint without weights passes: a config alone can be looked at and planned with. So do GGUF files, pickles, and
    what is on the hub, which are compared when they are loaded.

    Args:
        source: The checkpoint.
        complete: Whether all shards have to be there; without, those that are there are compared, and a note says which lack.

    Raises:
        ConfigError: If the two contradict each other: the config is not that of these weights.
    """
    folder = Path(source.location)
    if source.gguf_file is not None or not folder.is_dir():
        return []
    tensors = tensors_of(folder)
    notes = []
    if tensors.missing:
        incomplete = f"{folder} is incomplete: {INDEX} names {shown_names(tensors.missing)}, which is not there."
        if complete:
            raise ConfigError(incomplete, "Download it again.")
        notes.append(incomplete)
    if tensors.num_files and not tensors.by_name:
        raise _misfit("their files hold no tensor.")
    if tensors.by_name and has_known_tensors(source):
        if not tensors.missing:
            _check_layers(source.config, tensors.by_name)
        _check_shapes(source.config, tensors.by_name)
    note = stored_table_note(tensors.by_name, source.adapter.base_rope if source.adapter is not None else source.rope)
    return [*notes, *([note] if note else [])]


def has_known_tensors(source: ModelSource) -> bool:
    """Returns whether the names and shapes of a model's tensors follow from its config in the way that is known here."""
    config = source.config
    return config.get("model_type") in SELF_CONTAINED_CONFIGS and "quantization_config" not in config


def _check_layers(config: Mapping[str, Any], tensors: Mapping[str, StoredTensor]) -> None:
    layers: dict[int, set[str]] = {}
    for name in tensors:
        if found := _LAYER.search(name):
            layers.setdefault(int(found[1]), set()).add(found[2])
    wanted, depth = config.get("num_hidden_layers"), max(layers, default=-1) + 1
    if wanted is not None and depth != wanted:
        raise _misfit(f"num_hidden_layers = {wanted}, and the weights have {depth} layers.")
    for number in range(depth):
        absent = [part for part in _IN_EVERY_LAYER if part not in layers.get(number, ())]
        if absent:
            raise _misfit(f"the weights lack layers.{number}.{absent[0]}.")
    needed = ["embed_tokens.weight"] + ["lm_head.weight"] * (config.get("tie_word_embeddings") is False)
    needed += [] if config["model_type"] == "olmo" else ["model.norm.weight"]  # OLMo's norms have no weights
    for end in needed:
        if not any(name.endswith(end) for name in tensors):
            raise _misfit(f"the weights lack {end}.")


def _check_shapes(config: Mapping[str, Any], tensors: Mapping[str, StoredTensor]) -> None:
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    sizes = {
        **config,
        _HEADS: heads * head_dim,
        _KEY_HEADS: (config.get("num_key_value_heads") or heads) * head_dim,
    }
    for name, tensor in tensors.items():
        ends = next((end for end in _SHAPES if name.endswith(f".{end}") or name == end), None)
        if ends is None or not all(isinstance(sizes.get(size), int) for size in _SHAPES[ends]):
            continue
        if tensor.dtype not in _FLOATS:
            raise _misfit(
                f"{shorten(name)} is of type {tensor.dtype}, and config.json does not say that they are quantised."
            )
        wanted = tuple(int(sizes[size]) for size in _SHAPES[ends])
        if tensor.shape != wanted:
            said = " and ".join(f"{size} = {sizes[size]}" for size in dict.fromkeys(_SHAPES[ends]))
            raise _misfit(f"{shorten(name)} has the shape {list(tensor.shape)}, and {said} make it {list(wanted)}.")


def _misfit(what: str) -> ConfigError:
    return ConfigError(f"The weights do not fit config.json: {what}", "Give both from the same checkpoint.")
