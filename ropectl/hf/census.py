"""Which causal model types of the installed transformers can be scaled, and why the others cannot."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.hf.families import REFUSED_MODEL_TYPES, REFUSED_ROPE_TYPES

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
        reason = refusal(names)
        if reason:
            result.refused[model_type] = reason
        elif any(_has_rotary_class(name) for name in (*names, *_siblings(model_type))):
            result.supported.append(model_type)
        else:
            result.without.append(model_type)
    return result


def refusal(names: dict[str, Any]) -> str | None:
    """Returns why none of these model types is scaled; None where nothing speaks against it.

    Args:
        names: Model types of a model and of its text part, with the text part's default ``rope_parameters``.
    """
    for model_type, block in names.items():
        if model_type in REFUSED_MODEL_TYPES:
            return REFUSED_MODEL_TYPES[model_type]
        kinds = [block, *(block or {}).values()]
        types = [kind.get("rope_type") for kind in kinds if isinstance(kind, dict)]
        for rope_type in types:
            if rope_type in REFUSED_ROPE_TYPES:
                return REFUSED_ROPE_TYPES[rope_type]
    return None


def _names(model_type: str) -> dict[str, Any]:
    from transformers import CONFIG_MAPPING

    try:
        text = CONFIG_MAPPING[model_type]().get_text_config(decoder=True)
        return {model_type: None, text.model_type: getattr(text, "rope_parameters", None)}
    except Exception:  # classes without a default config of their own raise many kinds
        return {model_type: None}


def _siblings(model_type: str) -> list[str]:
    """The model types that the same class runs."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

    return [name for name, kind in CLASSES.items() if kind == CLASSES[model_type]]


def _has_rotary_class(model_type: str) -> bool:
    from transformers.models.auto.configuration_auto import model_type_to_module_name

    name = model_type_to_module_name(model_type)
    spec = importlib.util.find_spec(f"transformers.models.{name}.modeling_{name}")
    return bool(spec and spec.origin and _ROTARY_CLASS.search(Path(spec.origin).read_text()))
