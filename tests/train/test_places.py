"""Where a run may write: nothing that it did not make itself is touched, and a place that cannot work shows at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ropectl.errors import ConfigError
from ropectl.train.finetuning import finetune
from ropectl.train.run_state.run_folder import TrainingFolder
from tests.gguf.loadable_gguf import write_loadable
from tests.train.runs import small_settings, write_text

pytestmark = pytest.mark.usefixtures("one_thread")

Checkpoint = Callable[..., Path]


def test_a_folder_of_others_where_the_run_would_be_kept(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """``--overwrite`` empties the run's folder: it has to be one."""
    theirs = tmp_path / "out.run" / "thesis.txt"
    theirs.parent.mkdir()
    theirs.write_text("three years")
    for changes in ({"overwrite": True}, {"resume": False}, {}):
        with pytest.raises(ConfigError, match=r"holds other files, such as thesis\.txt"):
            finetune(small_settings(checkpoint(), tmp_path / "out", **changes))
    assert theirs.read_text() == "three years"


def test_files_where_folders_are_made(checkpoint: Checkpoint, tmp_path: Path) -> None:
    source = checkpoint()
    (source / "model.safetensors").unlink()  # nothing may try to read them
    (tmp_path / "out.run").write_text("")
    with pytest.raises(ConfigError, match=r"out\.run is a file"):
        finetune(small_settings(source, tmp_path / "out"))
    (tmp_path / "model.gguf").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match=r"model\.gguf is a file"):
            finetune(small_settings(source, tmp_path / "model.gguf", overwrite=overwrite))
    assert (tmp_path / "model.gguf").read_text() == "precious"


def test_a_place_inside_the_training_text(checkpoint: Checkpoint, tmp_path: Path) -> None:
    text = write_text(tmp_path)
    with pytest.raises(ConfigError, match="inside the training text"):
        finetune(small_settings(checkpoint(), text / "tuned", text=f"{text}/../{text.name}"))


@pytest.mark.process
def test_an_adapter_never_replaces_its_base(checkpoint: Checkpoint, tmp_path: Path) -> None:
    base, adapter = checkpoint(), tmp_path / "adapter"
    finetune(small_settings(base, adapter, steps=1, strategy="lora", merge=False))
    before = (base / "model.safetensors").read_bytes()
    for place in (base, adapter):
        with pytest.raises(ConfigError, match="never written to"):
            finetune(small_settings(adapter, place, steps=1, method=None, factor=None, overwrite=True))
    assert (base / "model.safetensors").read_bytes() == before


@pytest.mark.process
def test_beside_a_gguf_file(tmp_path: Path) -> None:
    file = write_loadable(tmp_path / "model.gguf", "llama", {}, {})
    finetune(small_settings(file, tmp_path / "out", steps=1))
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_a_place_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert TrainingFolder(Path()).path == tmp_path / "empty.run"


@pytest.mark.parametrize("damage", ["{", '{"settings": 3}', "[]"])
def test_settings_that_cannot_be_read(tmp_path: Path, damage: str) -> None:
    """States whose settings are not known are not gone on from in silence."""
    folder = TrainingFolder(tmp_path / "out")
    folder.begin({"steps": 3})
    (folder.path / "run.json").write_text(damage)
    with pytest.raises(ConfigError, match="cannot be read"):
        folder.check_settings({"steps": 3}, force=False)
    assert "not known" in folder.check_settings({"steps": 3}, force=True)[0]
