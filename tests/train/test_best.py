"""The best weights that a saved state goes by are there as long as the state is."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from ropectl.train.run_state.run_folder import TrainingFolder


def save(folder: TrainingFolder, step: int, best_step: int | None) -> None:
    folder.save(step, {"best_step": best_step}, 1, lambda aside: None, is_main=True, barrier=lambda: None)


def test_a_killed_run_finds_what_was_best_at_its_state(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path / "out")

    def steps() -> list[int]:
        return [step for step in range(10) if (folder.best / f"step-{step:08d}.safetensors").exists()]

    folder.write_best(2, {"w": torch.full((2,), 2.0)})
    save(folder, 3, best_step=2)
    folder.write_best(4, {"w": torch.full((2,), 4.0)})
    assert steps() == [2, 4]  # killed here, the run continues from step 3, whose best is step 2
    assert load_file(folder.best_weights(2))["w"].tolist() == [2.0, 2.0]
    save(folder, 6, best_step=4)
    folder.write_best(8, {"w": torch.full((2,), 8.0)})
    assert steps() == [4, 8]
