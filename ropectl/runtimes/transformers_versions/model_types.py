"""Which model types each version of transformers has, and the base and scaling that each class takes where a file says nothing.

Collected from the wheels by ``scripts/runtimes/collect_transformers.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ropectl.json_reading import read_object
from ropectl.records import ReadingEvidence

_FILE = Path(__file__).parent.parent / "runs" / "transformers_types.json"

#: The base of most classes, and of llama.cpp.
FALLBACK_THETA = 10_000.0


@cache
def _collected() -> Mapping[str, Any]:
    return read_object(_FILE)


def has_type(version: str, model_type: str) -> bool | None:
    """Returns whether a version has a model type, parts of models included; None for a version that was not looked at."""
    versions = list(_collected()["versions"])
    if version not in versions:
        return None
    return bool(_collected()["types"].get(model_type, "0" * len(versions))[versions.index(version)] == "1")


def absence(version: str, model_type: str) -> str:
    """Returns in a few words that a version has no such model type, and which of those looked at have it."""
    versions = list(_collected()["versions"])
    having = [one for one in versions if has_type(one, model_type)]
    if not having:
        return f"no such model type: {model_type!r}"
    is_earlier = versions.index(version) < versions.index(having[0])
    when = f"before {having[0]}" if is_earlier else f"after {having[-1]}"
    return f"no such model type {when}, of the versions that were run"


def looked_at(version: str) -> ReadingEvidence:
    """Returns how the model types of a version are known."""
    release, date = _collected()["versions"][version]
    return ReadingEvidence("run", release, date, "the model types of its wheel")


def default_theta(version: str, model_type: str) -> float:
    """Returns the base that a version's class takes where a file does not say it."""
    return float(_defaults("rope_theta", version).get(model_type, FALLBACK_THETA))


def default_block(version: str, model_type: str) -> Mapping[str, Any] | None:
    """Returns the scaling that a version's class takes where a file says nothing of any; None for no scaling."""
    block: Mapping[str, Any] | None = _defaults("block", version).get(model_type)
    return block


def _defaults(key: str, version: str) -> Mapping[str, Any]:
    """Returns what classes take, by model type; of a version that was not looked at, what those of the newest take."""
    by_version: Mapping[str, Mapping[str, Any]] = _collected()[key]
    return by_version.get(version) or by_version[list(by_version)[-1]]
