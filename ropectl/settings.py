"""Settings out of YAML files and flags: lengths understood, checked, and refused in words."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from ropectl.errors import ConfigError
from ropectl.names import name_hint, unknown_choice

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

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

    _check_switches(kind, settings)
    for name in _ONE_LENGTH:
        if isinstance(settings.get(name), str):
            settings[name] = parse_length(settings[name], name.replace("_", "-"))
    for name, field in kind.model_fields.items():
        if get_origin(field.annotation) is tuple and isinstance(settings.get(name), str):
            settings[name] = [settings[name]]  # one needs no list
        if field.annotation == tuple[int, ...] and name in settings and name != _POSITIONS:  # numbers of tokens
            given = settings[name]
            settings[name] = parse_lengths(map(str, given if isinstance(given, list | tuple) else [given]))
    if _POSITIONS in settings:
        settings[_POSITIONS] = _positions(settings[_POSITIONS])
    try:
        return kind(**settings)
    except ValidationError as error:
        raise _refusal(kind, settings, error) from None


def _leaves(annotation: Any) -> set[Any]:
    """Types that a value may be made of; ``Literal`` for one of some words."""
    if get_origin(annotation) is Literal:
        return {Literal}
    inner = [_leaves(part) for part in get_args(annotation)]
    return set().union(*inner) if inner else {annotation}


def _check_switches(kind: type[BaseModel], settings: dict[str, Any]) -> None:
    """Refuses ``true`` where a number or a word belongs: it would count as 1, and ``off`` in YAML is false.

    Raises:
        ConfigError: Naming the setting.
    """
    for name, value in settings.items():
        field = kind.model_fields.get(name)
        values = value if isinstance(value, list | tuple) else [value]
        if field is None or not any(isinstance(entry, bool) for entry in values):
            continue
        leaves = _leaves(field.annotation)
        if bool in leaves:
            continue
        is_number = bool({int, float} & leaves)
        wanted = "a number belongs there" if is_number else "a word belongs there"
        hint = "YAML reads on, yes, off and no as true and false" + (
            "." if is_number else f': put the word in quotes, as in {name}: "on".'
        )
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        raise ConfigError(f"{name.replace('_', '-')} = {shown} is not possible: {wanted} ({field.description}).", hint)


def _refusal(kind: type[BaseModel], settings: dict[str, Any], error: ValidationError) -> ConfigError:
    """pydantic's most telling complaint as ours: the setting, its value, what is allowed, a near name."""
    from ropectl.specs import NO_SUCH_TYPE, describe_range

    first = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")
    if not first["loc"]:  # a rule over several settings; its text is ours
        return ConfigError(str(first["msg"]).removeprefix("Value error, "))
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return ConfigError(f"There is no setting {name!r} here.", name_hint(name, kind.model_fields))
    field, setting, value = kind.model_fields[name], name.replace("_", "-"), settings.get(name)
    if first["type"] == "literal_error":
        return unknown_choice(setting, value, [str(word) for word in get_args(field.annotation)])
    hint = "YAML reads a date there; a text is put in quotes." if isinstance(value, date) else ""
    allowed = describe_range(field)
    detail = next((text for start, text in NO_SUCH_TYPE.items() if first["type"].startswith(start)), None)
    if first["type"].startswith(("greater_than", "less_than")):
        detail = f"it must be {allowed}" if allowed else None
    if detail is None:
        message = str(first["msg"]).removeprefix("Value error, ")
        detail = message[0].lower() + message[1:]
    return ConfigError(f"{setting} = {_shown(value)} is not possible: {detail} ({field.description}).", hint)


def _shown(value: Any) -> str:
    """A value as it was written: numbers bare, whether a flag or a file gave them, words in quotes."""
    if isinstance(value, date):
        return str(value)
    try:
        return str(value) if math.isfinite(float(value)) else repr(value)
    except (TypeError, ValueError):
        return repr(value)


def _positions(given: Any) -> list[int]:
    """Token positions, written as lengths are; 0 is one too."""
    from ropectl.lengths import parse_lengths

    texts = map(str, given if isinstance(given, list | tuple) else [given])
    parts = [part.strip() for text in texts for part in text.split(",")]
    later = [part for part in parts if part != "0"]
    return [0] * ("0" in parts) + parse_lengths(later, "position")
