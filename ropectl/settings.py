"""Settings out of YAML files and flags: read, lengths understood, checked, and refused in words."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ropectl.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Config = TypeVar("Config", bound=BaseModel)

_ONE_LENGTH = (
    "target_length", "original_length", "prefill_chunk", "freeze_at", "length", "seq_len", "document_tokens",
    "short_context",
)  # fmt: skip
#: Written as lengths are, but 0 is one too.
_POSITIONS = "needle_positions"


def make_config(kind: type[Config], settings: dict[str, Any]) -> Config:
    """Returns checked settings, lengths such as ``8k`` understood.

    Raises:
        ConfigError: Naming the setting, its value and what is allowed.
    """
    from pydantic import ValidationError

    from ropectl.lengths import parse_length, parse_lengths
    from ropectl.specs import describe_range

    for name in _ONE_LENGTH:
        if isinstance(settings.get(name), str):
            settings[name] = parse_length(settings[name], name.replace("_", "-"))
    for name, field in kind.model_fields.items():
        if field.annotation == tuple[int, ...] and name in settings and name != _POSITIONS:  # numbers of tokens
            given = settings[name]
            settings[name] = parse_lengths(map(str, given if isinstance(given, list | tuple) else [given]))
    if _POSITIONS in settings:
        settings[_POSITIONS] = _positions(settings[_POSITIONS])
    if isinstance(settings.get("methods"), str):
        settings["methods"] = [settings["methods"]]
    try:
        return kind(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(name, kind.model_fields, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(kind.model_fields)}."
            raise ConfigError(f"There is no setting {name!r} here.", hint) from None
        field = kind.model_fields[name]
        allowed = describe_range(field)
        is_bound = first["type"].startswith(("greater_than", "less_than"))
        detail = f"it must be {allowed}" if is_bound else first["msg"][0].lower() + first["msg"][1:]
        raise ConfigError(
            f"{name.replace('_', '-')} = {settings.get(name)} is not possible: {detail} ({field.description})."
        ) from None


def _positions(given: Any) -> list[int]:
    """Token positions, written as lengths are; 0 is one too."""
    from ropectl.lengths import parse_lengths

    texts = map(str, given if isinstance(given, list | tuple) else [given])
    parts = [part.strip() for text in texts for part in text.split(",")]
    later = [part for part in parts if part != "0"]
    return [0] * ("0" in parts) + parse_lengths(later, "position")


def read_yaml(file: Path) -> dict[str, Any]:
    """Returns the settings that a YAML file holds, ``-`` in their names read as ``_``.

    Raises:
        ConfigError: If it cannot be read, or is no list of settings.
    """
    import yaml

    try:
        content = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"Cannot read the config file {file}: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"The config file {file} is not a list of KEY: VALUE settings.")
    return {str(key).replace("-", "_"): value for key, value in content.items()}
