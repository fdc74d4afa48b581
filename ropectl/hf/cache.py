"""How the installed transformers names the key-value cache: ``cache``, or ``past_key_values`` before 5.2x."""

from __future__ import annotations

import inspect
from typing import Any


def cache_name(model: Any) -> str:
    """Returns the name of the cache in the arguments of ``model.forward`` and in its output."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
