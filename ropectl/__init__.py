"""ropectl: extend the context window of LLaMA-style models, and measure how far they really reach.

The functions below are imported when first used, so that ``import ropectl`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ropectl.advise.api import choose_methods, inspect_model
    from ropectl.checkpoint.patching import patch_checkpoint
    from ropectl.compare.run import compare_methods
    from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
    from ropectl.evaluate.retrieval.passkey_evaluation import evaluate_passkey
    from ropectl.evaluate.retrieval.task_evaluation import evaluate_tasks
    from ropectl.evaluate.setup import load_patched
    from ropectl.hf.model.patch import apply_rope
    from ropectl.rope.registry import parse_method
    from ropectl.train.finetuning import finetune

_PLACES = {
    "apply_rope": "ropectl.hf.model.patch",
    "choose_methods": "ropectl.advise.api",
    "compare_methods": "ropectl.compare.run",
    "evaluate_perplexity": "ropectl.evaluate.perplexity.evaluation",
    "evaluate_passkey": "ropectl.evaluate.retrieval.passkey_evaluation",
    "evaluate_tasks": "ropectl.evaluate.retrieval.task_evaluation",
    "finetune": "ropectl.train.finetuning",
    "inspect_model": "ropectl.advise.api",
    "load_patched": "ropectl.evaluate.setup",
    "parse_method": "ropectl.rope.registry",
    "patch_checkpoint": "ropectl.checkpoint.patching",
}

__all__ = [
    "apply_rope",
    "choose_methods",
    "compare_methods",
    "evaluate_passkey",
    "evaluate_perplexity",
    "evaluate_tasks",
    "finetune",
    "inspect_model",
    "load_patched",
    "parse_method",
    "patch_checkpoint",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ropectl' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
