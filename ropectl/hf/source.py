"""Where a model comes from, and what its config says: a folder, a hub id, a GGUF file or ``builtin:``.

No weights are loaded here, so every check that needs only the config is made before they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.dialects import check_dialects, check_types, text_section
from ropectl.hf.families import named
from ropectl.hf.geometry import RopeDescription, describe_rope, is_self_contained

BUILTIN_MODELS = {"builtin:tiny": TINY_MODEL_DIR}

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from and what its config says; no weight is loaded yet.

    Attributes:
        name: As the user wrote it.
        location: Folder, or hub id, that transformers loads from.
        gguf_file: Name of the GGUF file inside ``location``; None for ordinary checkpoints.
        revision: Branch, tag or commit on the hub.
        commit: The commit that the revision stands for, for models from the hub.
        config: The content of ``config.json``.
        rope: Geometry and current scaling method.
    """

    name: str
    location: str
    config: Mapping[str, Any]
    rope: RopeDescription
    gguf_file: str | None = None
    revision: str | None = None
    commit: str | None = None


def read_config(
    name: str,
    revision: str | None = None,
    original_length: int | None = None,
    trust_remote_code: bool = False,
    layers: str | None = None,
) -> ModelSource:
    """Returns what is known of a model without its weights.

    Args:
        name: Folder, GGUF file, hub id or ``builtin:tiny``.
        revision: Branch, tag or commit on the hub.
        original_length: The trained length, where the config does not say it.
        trust_remote_code: Run configuration code that comes with the checkpoint, where its class is not stock.
        layers: The layer type to describe, where each has its own rotary table; by default the one that sees all.

    Raises:
        ConfigError: If there is no such model, or its config is broken.
        UnsupportedModelError: If it has no rotary embedding that ropectl can scale.
    """
    if name.startswith("builtin:") and name not in BUILTIN_MODELS:
        raise ConfigError(f"There is no built-in model {name!r}.", f"Known: {', '.join(BUILTIN_MODELS)}.")
    path = BUILTIN_MODELS.get(name, Path(name).expanduser())
    gguf_file = commit = None
    config: Mapping[str, Any]
    if path.is_file() and path.suffix == ".gguf":
        location, gguf_file = str(path.parent), path.name
        config = _gguf_config(path)
    elif path.is_dir():
        location = str(path)
        config = _json_config(path / "config.json")
    elif path.exists() or name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise ConfigError(
            f"There is no model folder {name!r}.",
            "Give a folder with a config.json, a .gguf file, a hub id such as org/name, or builtin:tiny.",
        )
    else:
        location = name
        config, commit = _hub_config(name, revision)
    if revision is not None and commit is None:
        raise ConfigError(
            f"--revision {revision} names a version on the hub, but {name!r} is a local model.", "Leave out --revision."
        )
    check_types(config)
    check_dialects(config, knows_length=original_length is not None)
    says_length = named(text_section(config), "max_position_embeddings") is not None
    if gguf_file is None and not is_self_contained(config):
        config = _with_class_defaults(location, config, revision, trust_remote_code)
    rope = describe_rope(config, original_length, layers)
    if not says_length and original_length is None:
        length = rope.geometry.original_max_position_embeddings
        note = f"The config does not say max_position_embeddings: {length} is the default of its class. Another: --original-length N"
        rope = replace(rope, warnings=(*rope.warnings, note))
    return ModelSource(name, location, config, rope, gguf_file, revision, commit)


def _json_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ConfigError(f"{path.parent} has no config.json.", "Give the folder of a Hugging Face checkpoint.")
    try:
        config = json.loads(path.read_text())
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{path} is not a JSON object.")
    return config


def _hub_config(name: str, revision: str | None) -> tuple[dict[str, Any], str]:
    """The config, and the commit it is from: the hub's cache keeps each commit in a folder of that name."""
    from huggingface_hub import hf_hub_download

    try:
        path = Path(hf_hub_download(name, "config.json", revision=revision))
        return _json_config(path), path.parent.name
    except ConfigError:
        raise
    except Exception as error:  # the hub client raises many kinds: offline, not found, gated, malformed
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"{name!r} is no folder here, and its config could not be read from the hub: {reason}",
            "Check the name, the revision and the connection, or give a local folder.",
        ) from None


def _gguf_config(path: Path) -> dict[str, Any]:
    """The config of a GGUF file, refused where it carries rotary scaling that loading would drop."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ConfigError("Reading a GGUF file needs the package gguf.", "pip install 'ropectl[gguf]'") from None
    from transformers import AutoConfig

    reader = GGUFReader(path)
    scaling = [key for key in reader.fields if ".rope.scaling." in key and not key.endswith("type")]
    factors = [tensor.name for tensor in reader.tensors if tensor.name.startswith("rope_f")]
    if scaling or factors:
        raise UnsupportedModelError(
            f"{path.name} carries rotary scaling ({', '.join(scaling + factors)}) that transformers drops when it loads a GGUF "
            "file: the numbers would be those of another model.",
            "Use the original checkpoint.",
        )
    config: dict[str, Any] = AutoConfig.from_pretrained(path.parent, gguf_file=path.name).to_dict()
    return config


def _with_class_defaults(
    location: str, config: Mapping[str, Any], revision: str | None, trust_remote_code: bool
) -> Mapping[str, Any]:
    """Fills what a config.json leaves to the defaults of its model class."""
    if "model_type" not in config:
        raise ConfigError(
            "The config has no model_type, so its defaults are unknown.",
            "Give the folder of a Hugging Face checkpoint.",
        )
    from transformers import AutoConfig

    try:
        full: dict[str, Any] = AutoConfig.from_pretrained(
            location, revision=revision, trust_remote_code=trust_remote_code
        ).to_dict()
    except Exception as error:  # a strict config raises many kinds
        raise ConfigError(
            f"transformers cannot read the config of {location}: {error}", load_hint(str(error))
        ) from None
    return full


def load_hint(message: str) -> str:
    """Returns what to type when transformers refuses to run foreign code."""
    if "trust_remote_code" in message:
        return "It brings its own code. To run that code: --trust-remote-code"
    if "safetensors" in message:
        return "Its weights may be pickles, which can run code while being read. To load them anyway: --allow-pickle"
    return ""
