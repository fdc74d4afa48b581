"""A result that lacks something is not handed over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ropectl.errors import TrainingError
from ropectl.train import export
from ropectl.train.export import validate_files
from ropectl.train.finetuning import finetune
from tests.train.runs import small_settings

WEIGHTS = {"a.weight": torch.ones(8, 4), "b.weight": torch.ones(4, dtype=torch.bfloat16)}
SIZE = 8 * 4 * 4 + 4 * 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of two files."""
    save_file({"a.weight": WEIGHTS["a.weight"]}, tmp_path / "model-1.safetensors")
    save_file({"b.weight": WEIGHTS["b.weight"]}, tmp_path / "model-2.safetensors")
    return tmp_path


def test_counts_tensors_and_bytes_of_all_files(folder: Path) -> None:
    assert validate_files(folder, 2, SIZE) == (2, SIZE)


@pytest.mark.parametrize(("num_tensors", "num_bytes"), [(3, 1), (1, SIZE + 1)])
def test_missing_tensors(folder: Path, num_tensors: int, num_bytes: int) -> None:
    with pytest.raises(
        TrainingError, match=f"2 tensors and {SIZE} bytes; expected are at least {num_tensors} and {num_bytes}"
    ):
        validate_files(folder, num_tensors, num_bytes)


def test_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="0 tensors"):
        validate_files(tmp_path)


@pytest.mark.parametrize("shape", [(0,), (0, 64)])
def test_an_empty_tensor(folder: Path, shape: tuple[int, ...]) -> None:
    """What is left of a sharded weight that nobody gathered."""
    save_file({"layers.0.lora_A.weight": torch.empty(shape), **WEIGHTS}, folder / "adapter_model.safetensors")
    with pytest.raises(TrainingError, match=r"layers\.0\.lora_A\.weight has shape \[0.*nothing was saved"):
        validate_files(folder)


@pytest.mark.parametrize("kept", [-1, 40, 4, 0], ids=["one byte short", "in the header", "in its length", "empty"])
def test_a_file_that_was_cut(folder: Path, kept: int) -> None:
    path = folder / "model-2.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(TrainingError, match=r"model-2\.safetensors is incomplete"):
        validate_files(folder)


@pytest.mark.process
def test_what_was_written_is_compared_with_what_was_trained(
    checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that loses a layer: the run fails, and no result appears."""
    save_model = export.save_model

    def careless(model: torch.nn.Module, source: object, folder: Path, options: object) -> None:
        save_model(model, source, folder, options)
        path = folder / "model.safetensors"
        whole = load_file(path)
        save_file({name: tensor for name, tensor in whole.items() if "layers.1" not in name}, path, {"format": "pt"})

    monkeypatch.setattr(export, "save_model", careless)
    settings = small_settings(checkpoint(), tmp_path / "out", steps=1)
    with pytest.raises(TrainingError, match="12 tensors and 688,896 bytes; expected are at least 1 and 853,248"):
        finetune(settings)
    assert not (tmp_path / "out").exists()
