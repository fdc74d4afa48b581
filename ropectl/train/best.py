"""The weights of the best validation, kept until the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_FILE = "weights.safetensors"


class BestWeights:
    """One file that is replaced whenever a better one comes.

    Args:
        folder: Where it is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, weights: dict[str, Any], is_main: bool) -> None:
        """Replaces the file; only the main process does."""
        if not is_main:
            return
        from safetensors.torch import save_file

        self._folder.mkdir(parents=True, exist_ok=True)
        aside = self._folder / f".{_FILE}.tmp"
        save_file(weights, aside)
        aside.replace(self._folder / _FILE)

    def read(self) -> dict[str, Any]:
        """Returns the weights."""
        from safetensors.torch import load_file

        weights: dict[str, Any] = load_file(self._folder / _FILE)
        return weights
