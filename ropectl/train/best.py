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

    def write(self, weights: dict[str, Any], step: int, is_main: bool) -> None:
        """Replaces the file by the weights of a step; only the main process does."""
        if not is_main:
            return
        from safetensors.torch import save_file

        self._folder.mkdir(parents=True, exist_ok=True)
        aside = self._folder / f".{_FILE}.tmp"
        save_file(weights, aside, {"step": str(step)})
        aside.replace(self._folder / _FILE)

    def step(self) -> int | None:
        """Returns the step that the file is of; None if there is no whole one."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self._folder / _FILE, framework="np") as file:
                return int((file.metadata() or {})["step"])
        except (OSError, SafetensorError, KeyError, ValueError):
            return None

    def read(self) -> dict[str, Any]:
        """Returns the weights."""
        from safetensors.torch import load_file

        weights: dict[str, Any] = load_file(self._folder / _FILE)
        return weights
