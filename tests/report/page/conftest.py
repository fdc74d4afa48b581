"""A real comparison of a random model, measured once for all tests of the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.compare.run import compare_methods
from ropectl.evaluate.config import CompareConfig
from ropectl.report.page.sections import make_page
from ropectl.report.runs_read import read_runs
from ropectl.report.writers.html import html_text
from tests.conftest import make_model


@pytest.fixture(scope="package")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The random model."""
    folder = tmp_path_factory.mktemp("models") / "tiny-random"
    make_model().save_pretrained(folder)
    AutoTokenizer.from_pretrained(TINY_MODEL_DIR).save_pretrained(folder)
    return folder


@pytest.fixture(scope="package")
def config(model_folder: Path) -> CompareConfig:
    """What is compared."""
    return CompareConfig(
        model=str(model_folder), factor=4, methods=("yarn:beta_fast=16", "dynamic-ntk"), lengths=(128, 200),
        documents=2, trials=2, depths=2, seed=3,
    )  # fmt: skip


@pytest.fixture(scope="package")
def comparison(config: CompareConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its run folder."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    compare_methods(config, folder)
    return folder


@pytest.fixture(scope="package")
def page_of() -> Callable[..., str]:
    """Returns the page of some places."""

    def made(*places: Path) -> str:
        return html_text(make_page(read_runs(list(places))))

    return made


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out what takes longest where a test is about the rest."""
    monkeypatch.setattr("ropectl.report.page.sections.record_drawings", lambda _: [])


@pytest.fixture
def record(comparison: Path) -> Any:
    """The comparison's document."""
    import json

    return json.loads((comparison / "comparison.json").read_text())
