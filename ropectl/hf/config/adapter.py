"""Reads LoRA adapter folders: the base they belong to, and the scaling they were trained with.

An adapter learns on scaled positions and is useless on others. Its folder therefore needs the scaling too,
in ``ropectl.json``; an adapter without it is refused until a method is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.file_reading import home_path
from ropectl.hf.config.geometry import RopeDescription
from ropectl.json_reading import read_object
from ropectl.printable import first_line, shown

ADAPTER_CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"


@dataclass(frozen=True)
class Adapter:
    """An adapter on a base model.

    Attributes:
        path: The adapter's folder.
        base_rope: What the base's own config says, which is what it computes when it is loaded.
        is_described: Whether it is known with which scaling it was trained.
    """

    path: Path
    base_rope: RopeDescription
    is_described: bool


def is_adapter(path: Path) -> bool:
    """Returns whether a folder holds an adapter and not a whole model."""
    return (path / ADAPTER_CONFIG).is_file() and not (path / "config.json").is_file()


def base_of_adapter(path: Path) -> tuple[str, str | None]:
    """Returns name and revision of the model that an adapter belongs to.

    Raises:
        ConfigError: If the adapter does not name one.
    """
    file = path / ADAPTER_CONFIG
    try:
        content = read_object(file)
        name = content["base_model_name_or_path"]
    except KeyError:
        raise ConfigError(f"{file} does not say which model the adapter belongs to: base_model_name_or_path.") from None
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f"{file} says base_model_name_or_path = {shown(name)}, which is not a model.", f"Correct {file}."
        )
    relative = path / name
    for place in (name, relative):
        home_path(place)  # refuses names that no system allows
    return (str(relative) if not Path(name).exists() and relative.is_dir() else name), content.get("revision")


def merge_adapter(model: Any, adapter: Adapter, allow_pickle: bool = False) -> Any:
    """Returns the base model with the adapter's changes added to its weights.

    Raises:
        ConfigError: If the adapter is pickled, or does not fit the base.
    """
    from peft import PeftModel

    if not (adapter.path / _WEIGHTS).is_file() and not allow_pickle:
        raise ConfigError(
            f"{adapter.path} has no {_WEIGHTS}; pickled weights can run code while being read.",
            "To load them anyway: --allow-pickle",
        )
    try:
        merged = PeftModel.from_pretrained(model, str(adapter.path)).merge_and_unload(safe_merge=True)
    except (ValueError, RuntimeError, KeyError, OSError) as error:
        raise ConfigError(f"The adapter {adapter.path} does not fit its base: {first_line(error)}") from None
    _untie_if_different(merged)
    return merged


def _untie_if_different(model: Any) -> None:
    """Records in the config what merging did: an adapter that trained embedding or head separately has untied them."""
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    config = model.config.get_text_config()
    if config.tie_word_embeddings and head is not None and head.weight.data_ptr() != embedding.weight.data_ptr():
        config.tie_word_embeddings = model.config.tie_word_embeddings = False
