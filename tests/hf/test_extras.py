"""What an extra package is missing for is said with what to install, before any weight loads."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from ropectl import extras
from tests.gguf.loadable_gguf import write_loadable

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the packages is installed, and no weight is loaded."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in extras.EXTRAS else find_spec(name))
    monkeypatch.setattr("ropectl.hf.model.loading._complete_model", None)


@pytest.mark.usefixtures("without")
def test_a_gguf_file(ropectl: Run, tmp_path: Path) -> None:
    """Its config is read without a package; its tokenizer and its weights are not."""
    file = write_loadable(tmp_path / "model.gguf", "llama", {}, {})
    assert ropectl("inspect", file)[0] == 0
    for arguments in (
        ("eval-perplexity", file),
        ("eval-passkey", file),
        ("patch", file, "-m", "yarn:factor=2", "-o", tmp_path / "out"),
    ):
        code, _, err = ropectl(*arguments)
        assert code == 2 and "needs the package gguf" in err and "pip install 'ropectl[gguf]'" in err, err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without")
def test_lora(ropectl: Run, checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(
        f'{{"base_model_name_or_path": "{checkpoint()}", "peft_type": "LORA"}}'
    )
    for arguments in (
        ("eval-passkey", adapter, "-m", "none"),
        ("finetune", "-m", "yarn", "--factor", "2", "--strategy", "lora", "-o", tmp_path / "out"),
    ):
        code, _, err = ropectl(*arguments)
        assert code == 2 and "needs the package peft" in err and "pip install 'ropectl[peft]'" in err, err
