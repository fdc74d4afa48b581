"""Describes a model by its config alone: a folder, an adapter, a hub id, a GGUF file or ``builtin:``.

No weights are loaded here: every check that needs only the config comes before.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError, RopectlError, listed_warnings
from ropectl.hf.class_defaults import class_config, with_class_defaults
from ropectl.hf.config.adapter import Adapter, base_of_adapter, is_adapter
from ropectl.hf.config.block_keys import outer_notes
from ropectl.hf.config.block_types import block_notes, check_blocks
from ropectl.hf.config.dialects import check_dialects, check_types, scaling_block, text_section
from ropectl.hf.config.families import named
from ropectl.hf.config.geometry import RopeDescription, describe_rope, is_self_contained
from ropectl.hf.config.layers import layer_warnings
from ropectl.hf.config.places import find_place, local_path
from ropectl.hf.config.sidecar import SIDECAR, read_sidecar, with_sidecar
from ropectl.hf.config.sizes import check_sizes
from ropectl.hf.model_settings import ConfigSettings
from ropectl.hf.refused_types import refuse_model_type
from ropectl.rope.registry import parse_method


@dataclass(frozen=True)
class ModelSource:
    """A model by its place and its config; no weight is loaded yet.

    Attributes:
        name: The model, as the user wrote it.
        location: Folder, or hub id, that transformers loads from.
        gguf_file: Name of the GGUF file inside ``location``; None for ordinary checkpoints.
        revision: Branch, tag or commit on the hub.
        commit: The commit of that revision, for models from the hub.
        config: The content of ``config.json``, completed by the defaults of its class where it is silent.
        file_config: The content of ``config.json`` as it is stored; for a GGUF file what transformers makes of it.
        rope: Geometry and current scaling method.
        adapter: The LoRA adapter that is added to the weights; None for whole models.
    """

    name: str
    location: str
    config: Mapping[str, Any]
    rope: RopeDescription
    gguf_file: str | None = None
    revision: str | None = None
    commit: str | None = None
    adapter: Adapter | None = None
    file_config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def writable_config(self) -> dict[str, Any]:
        """The config as it is stored, to be changed and written again.

        Where each layer type has a rotary block of its own, all blocks are spelt out: a file may leave some to
        its class, but once one is written, transformers takes the others for absent.
        """
        config = copy.deepcopy(dict(self.file_config))
        if self.rope.layer_type is not None:
            section = config["text_config"] if text_section(config) is not config else config
            section.pop("rope_scaling", None)
            section["rope_parameters"] = copy.deepcopy(text_section(self.config)["rope_parameters"])
        return config

    @property
    def tokenizer_location(self) -> str:
        """The folder or hub id of the tokenizer: an adapter may bring its own."""
        has_own = self.adapter is not None and (self.adapter.path / "tokenizer_config.json").is_file()
        return str(self.adapter.path) if self.adapter is not None and has_own else self.location

    @property
    def loaded_rope(self) -> RopeDescription:
        """The rotary embedding that transformers makes from the files.

        The scaling of an adapter, and that of a GGUF file, which transformers drops, is applied afterwards.
        """
        if self.gguf_file is not None:
            return replace(self.rope, method=parse_method("none"))
        return self.adapter.base_rope if self.adapter is not None else self.rope


def read_config(
    name: str,
    revision: str | None = None,
    original_length: int | None = None,
    trust_remote_code: bool = False,
    layers: str | None = None,
    strict: bool = False,
) -> ModelSource:
    """Returns what is known of a model without its weights.

    Args:
        name: Folder, GGUF file, adapter folder, hub id or ``builtin:tiny``.
        revision: Branch, tag or commit on the hub.
        original_length: The trained length, where the config does not give it.
        trust_remote_code: Run configuration code that comes with the checkpoint, where its class is not stock.
        layers: The layer type to describe, where each has its own rotary table; by default the one that sees everything.
        strict: Treat warnings about the config as errors.

    Raises:
        ConfigError: If there is no such model, its config is broken, or with ``strict`` there is a warning about it.
        UnsupportedModelError: If it has no rotary embedding that ropectl can scale.
    """
    source = _read(name, revision, original_length, trust_remote_code, layers)
    if strict and source.rope.warnings:
        raise ConfigError(listed_warnings(source.rope.warnings), "Correct the config, or leave out --strict.")
    said = None if original_length is None else _said_length(name, revision, trust_remote_code, layers)
    is_used = source.rope.geometry.original_max_position_embeddings == original_length
    return (
        replace(source, rope=replace(source.rope, said_length=said)) if is_used and said != original_length else source
    )


def _said_length(name: str, revision: str | None, trust_remote_code: bool, layers: str | None) -> int | None:
    """Returns the trained length that the files themselves say [tokens]; None if they do not."""
    try:
        source = _read(name, revision, None, trust_remote_code, layers)
    except RopectlError:
        return None
    said = source.rope.geometry.original_max_position_embeddings
    is_default = named(text_section(source.file_config), "max_position_embeddings") is None
    return None if is_default and said == source.rope.max_position_embeddings else said


def read_source(settings: ConfigSettings) -> ModelSource:
    """Returns what is known of the model that settings name; errors as for :func:`read_config`."""
    asked = settings
    return read_config(
        asked.model, asked.revision, asked.original_length, asked.trust_remote_code, asked.layers, asked.strict
    )


def _read(
    name: str, revision: str | None, original_length: int | None, trust_remote_code: bool, layers: str | None
) -> ModelSource:
    if is_adapter(local_path(name)):
        return _adapter_source(name, local_path(name), original_length, trust_remote_code, layers)
    place = find_place(name, revision)
    config = place.config
    check_types(config)
    refuse_model_type(text_section(config))
    check_sizes(config)
    check_blocks(text_section(config))
    check_dialects(config, knows_length=original_length is not None)
    says_length = named(text_section(config), "max_position_embeddings") is not None
    if place.gguf_file is None and not is_self_contained(config):
        config = with_class_defaults(place.location, config, revision, trust_remote_code, original_length)
    rope = describe_rope(config, original_length, layers)
    if not says_length and original_length is None:
        length = rope.max_position_embeddings
        note = f"The config does not say max_position_embeddings: {length} is the default of its class. Another: --original-length N"
        rope = replace(rope, warnings=(*rope.warnings, note))
    if place.gguf_file is None and original_length is None:
        sidecar = read_sidecar(place.sidecar)
        if sidecar is not None and sidecar.layer_type == rope.layer_type:  # else it describes another layer type
            block = scaling_block(text_section(config), rope.layer_type)
            kept = layer_warnings(text_section(config), rope.layer_type)
            rope = with_sidecar(rope, sidecar, block, place.sidecar, kept)
    section = text_section(place.config)
    unread = [*block_notes(section), *outer_notes(section, knows_length=original_length is not None)]
    rope = replace(rope, warnings=(*rope.warnings, *unread))
    return ModelSource(
        name, place.location, config, rope, place.gguf_file, revision, place.commit, file_config=place.config
    )


def _adapter_source(
    name: str, path: Path, original_length: int | None, trust_remote_code: bool, layers: str | None
) -> ModelSource:
    """Returns the base's source, with the scaling that the adapter was trained with."""
    base_name, revision = base_of_adapter(path)
    if is_adapter(local_path(base_name)):
        raise ConfigError(
            f"The base of the adapter {name}, {base_name}, is an adapter itself.",
            f"Merge that one first: ropectl patch {shlex.quote(base_name)} --merge -o merged",
        )
    base = _read(base_name, revision, original_length, trust_remote_code, layers)
    sidecar = read_sidecar(path / SIDECAR)
    rope = base.rope
    if sidecar is not None:
        rope = replace(
            rope,
            geometry=sidecar.geometry,
            method=parse_method(sidecar.method),
            max_position_embeddings=sidecar.max_position_embeddings,
            warnings=_idle_length(name, original_length, sidecar.geometry.original_max_position_embeddings),
        )
    is_described = sidecar is not None or base.rope.method.name != "none"
    return replace(base, name=name, rope=rope, adapter=Adapter(path, base.rope, is_described))


def _idle_length(name: str, asked: int | None, said: int) -> tuple[str, ...]:
    text = f"--original-length {asked} changes nothing: {SIDECAR} of {name} says that it was trained at {said} tokens."
    return () if asked in (None, said) else (text,)


def source_config(source: ModelSource, trust_remote_code: bool = False) -> Any:
    """Returns the transformers config of a model source.

    Raises:
        ConfigError: If transformers cannot read it.
    """
    gguf = {"gguf_file": source.gguf_file} if source.gguf_file else {}
    return class_config(source.name, source.location, source.revision, trust_remote_code, **gguf)
