"""The weights of the best validation, kept until the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ropectl.train.run_state.run_folder import TrainingFolder


class BestWeights:
    """One file for the best step so far, and one for each best step that a saved state still goes by.

    A run that is killed goes on from such a state, and has to find the weights that were the best at that time.

    Args:
        folder: The run's folder.
    """

    def __init__(self, folder: TrainingFolder) -> None:
        self._folder = folder

    def write(self, step: int, weights: dict[str, Any], is_main: bool) -> None:
        """Writes the weights of a step; only the main process does."""
        if not is_main:
            return
        from safetensors.torch import save_file

        path = self._path(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.tmp")
        save_file(weights, aside)
        aside.replace(path)
        needed = {path, *(self._path(best) for best in self._best_steps() if best is not None)}
        for other in path.parent.glob("*.safetensors"):
            if other not in needed:
                other.unlink(missing_ok=True)

    def has(self, step: int) -> bool:
        """Returns whether the weights of a step are there."""
        return self._path(step).is_file()

    def read(self, step: int) -> dict[str, Any]:
        """Returns the weights of the best step."""
        from safetensors.torch import load_file

        weights: dict[str, Any] = load_file(self._path(step))
        return weights

    def _best_steps(self) -> list[int | None]:
        return [state.progress.get("best_step") for state in self._folder.states()]

    def _path(self, step: int) -> Path:
        return self._folder.best / f"step-{step:08d}.safetensors"
