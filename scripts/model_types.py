"""Which causal model types of the installed transformers can be scaled, and why the others cannot."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from ropectl.hf.refused_types import REFUSED_MODEL_TYPES

_ROTARY_CLASS = re.compile(r"class (?!\w*(?:Vision|Audio))\w*Rotary\w*\(")


@dataclass(frozen=True)
class Census:
    """The causal model types of a transformers version.

    Attributes:
        supported: Types with rotary positions that a patch reaches.
        refused: Types with rotary positions that are not scaled, and the reason.
        without: Types without rotary positions.
    """

    supported: list[str]
    refused: dict[str, str]
    without: list[str]


def census() -> Census:
    """Returns the causal model types of the installed transformers, sorted by what can be done with them."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    result = Census([], {}, [])
    for model_type in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        names = _names(model_type)
        reason = next((REFUSED_MODEL_TYPES[name] for name in names if name in REFUSED_MODEL_TYPES), None)
        if reason:
            result.refused[model_type] = reason
        elif any(has_rotary_class(name) for name in (*names, *_siblings(model_type))):
            result.supported.append(model_type)
        else:
            result.without.append(model_type)
    return result


def _names(model_type: str) -> list[str]:
    """The model types of a model and of its text part."""
    from transformers import CONFIG_MAPPING

    try:
        return [model_type, CONFIG_MAPPING[model_type]().get_text_config(decoder=True).model_type]
    except Exception:  # classes without a default config of their own raise many kinds
        return [model_type]


def _siblings(model_type: str) -> list[str]:
    """The model types that the same class runs."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

    return [name for name, kind in CLASSES.items() if kind == CLASSES[model_type]]


def has_rotary_class(model_type: str) -> bool:
    """Returns whether the module of a model type has a rotary class for text."""
    from transformers.models.auto.configuration_auto import model_type_to_module_name

    name = model_type_to_module_name(model_type)
    spec = importlib.util.find_spec(f"transformers.models.{name}.modeling_{name}")
    return bool(spec and spec.origin and _ROTARY_CLASS.search(Path(spec.origin).read_text()))
