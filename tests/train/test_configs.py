"""The configs that the repository ships are accepted, and are what their comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropectl.config_file import read_yaml
from ropectl.setting_types import make_config
from ropectl.train.settings import FinetuneSettings
from ropectl.train.task import Task

FOLDER = Path(__file__).parents[2] / "configs" / "finetune"
CONFIGS = sorted(FOLDER.glob("*.yaml"))


def settings_of(path: Path, **flags: object) -> FinetuneSettings:
    return make_config(FinetuneSettings, {**read_yaml(path), "factor": 4, **flags})


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
@pytest.mark.parametrize("method", ["pi", "ntk", "yarn"])
def test_accepted(path: Path, method: str, tmp_path: Path) -> None:
    settings = settings_of(path, method=method, out=tmp_path / "out")
    task = Task.of(settings)
    assert task.plan.target_length == 2048
    assert (task.seq_len, task.target_length) == ((512, 2048) if settings.positions == "pose" else (2048, 2048))


def test_the_built_in_recipes_train_on_the_same_number_of_tokens() -> None:
    tokens = set()
    for path in FOLDER.glob("builtin-*.yaml"):
        settings = settings_of(path, method="pi")
        tokens.add(settings.steps * settings.batch_size * Task.of(settings).seq_len)
    assert tokens == {150 * 4 * 2048}
