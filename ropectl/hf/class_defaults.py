"""Completes a config by the defaults of its transformers class, which takes seconds to import."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.dialects import scaling_block, scaling_type, text_section
from ropectl.hf.config.families import ROPE_TYPE_ALIASES, family_of
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.run_names import check_model_type, check_own_code
from ropectl.printable import shorten

#: Longest reason of transformers that is passed on [characters].
_REASON_WIDTH = 200

#: A sentence that names an address: transformers makes one of the path of a local folder.
_WITH_ADDRESS = re.compile(r"[^.\n]*https?://\S*[^.\n]*\.?")


def with_class_defaults(
    location: str, config: Mapping[str, Any], revision: str | None, trust_remote_code: bool, original_length: int | None
) -> Mapping[str, Any]:
    """Returns a config.json completed by the defaults of its model class.

    Args:
        location: Folder, or hub id, that transformers loads from.
        config: The file's content.
        revision: Branch, tag or commit on the hub.
        trust_remote_code: Run configuration code that comes with the checkpoint.
        original_length: The trained length, where the user gives it [tokens].

    Raises:
        ConfigError: If there is no such class, or it refuses the file.
    """
    check_model_type(config, trust_remote_code)
    if trust_remote_code:
        check_own_code(location, config)
    try:
        full: dict[str, Any] = class_config(location, location, revision, trust_remote_code).to_dict()
    except ConfigError:
        _refuse_as_it_stands(config, original_length)
        _refuse_old_names(location, config)
        _refuse_other_types(location, config)
        raise
    return full


def _refuse_as_it_stands(config: Mapping[str, Any], original_length: int | None) -> None:
    """Refuses a file that transformers refused, in words of ropectl if it finds the fault in what the file says."""
    try:
        describe_rope(config, original_length)
    except UnsupportedModelError:
        return  # the file leaves to its class what would have to be known


def _refuse_old_names(location: str, config: Mapping[str, Any]) -> None:
    """Refuses a file whose class fails over a scaling block under an old name, with the name that it reads."""
    block = scaling_block(text_section(config))
    for old in (block.get("rope_type"), block.get("type")):
        if (new := ROPE_TYPE_ALIASES.get(str(old))) is not None:
            raise ConfigError(
                f"{location} scales with type {old!r}, an old name of {new!r}: the class of its model type in transformers "
                f"{version('transformers')} does not read the block under it.",
                f'Write "{new}" for "{old}" in config.json.',
            )


def _refuse_other_types(location: str, config: Mapping[str, Any]) -> None:
    """Refuses a file whose family takes few types of scaling, and not the one that it has."""
    section = text_section(config)
    taken, rope_type = family_of(section).rope_types, scaling_type(scaling_block(section))
    if taken and rope_type not in taken:
        raise ConfigError(
            f"{location} scales with type {rope_type!r}, but models of type {section.get('model_type')!r} take {' or '.join(taken)} "
            "only.",
            f"Take the block out of config.json, and write the scaling again: ropectl patch {shlex.quote(location)} -m METHOD",
        )


def class_config(name: str, location: str, revision: str | None, trust_remote_code: bool, **gguf: str) -> Any:
    """Returns the transformers config of a model.

    Args:
        name: The model, for the message.
        location: Folder, or hub id, that transformers loads from.
        revision: Branch, tag or commit on the hub.
        trust_remote_code: Run configuration code that comes with the checkpoint.
        gguf: The name of a GGUF file in the folder, as ``gguf_file``.

    Raises:
        ConfigError: If transformers cannot read it.
    """
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(location, revision=revision, trust_remote_code=trust_remote_code, **gguf)
    except Exception as error:  # a strict config raises many kinds
        reason = shorten(_WITH_ADDRESS.sub("", str(error)), _REASON_WIDTH)
        raise ConfigError(f"transformers cannot read the config of {name}: {reason}", load_hint(str(error))) from None


def load_hint(message: str) -> str:
    """Returns what to type when transformers refuses to run foreign code."""
    if "trust_remote_code" in message:
        return "It brings its own code. To run that code: --trust-remote-code"
    if "safetensors" in message:
        return "Its weights may be pickles, which can run code while being read. To load them anyway: --allow-pickle"
    return ""
