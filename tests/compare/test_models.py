"""Several models and several factors in one comparison."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.compare.run import compare_methods
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.hf.model.loading import load_model
from ropectl.records import ComparisonRecord
from ropectl.records.reading import read_as
from ropectl.report.tables.words import row_names
from ropectl.report.views.compare_methods import comparison_tables
from ropectl.reporter import Reporter

from .test_compare import without_times

pytestmark = pytest.mark.process

SMALL: dict[str, Any] = {"lengths": (128, 256), "documents": 2, "trials": 2, "depths": 2}


def test_a_patched_model_beside_its_base(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """What patch writes measures as the method does on the base; the base stays what all are judged against."""
    base, patched = checkpoint(), tmp_path / "patched"
    patch_checkpoint(PatchSettings(model=str(base), method="yarn", factor=2, out=patched))
    config = CompareConfig(model=str(base), others=(str(patched),), methods=("yarn:factor=2",), **SMALL)
    record = compare_methods(config, tmp_path / "run").record
    none, yarn, other = record["rows"]
    assert [row["model"] for row in record["rows"]] == [str(base), str(base), str(patched)] == [
        record["model"], record["model"], record["models"][1]
    ]  # fmt: skip
    assert other["method"] == yarn["method"] == "yarn:factor=2" and none["method"] == "none"
    for key in ("perplexity", "tail", "passkey", "reach", "short_delta"):
        assert other[key] == yarn[key], key
    assert row_names(read_as(ComparisonRecord, record, "it", "compare-methods").rows) == [
        "none",
        "yarn",
        "patched (yarn)",
    ]
    assert {cell["model"] for cell in record["manifest"]["cells"]} == {str(base), str(patched)}


def test_another_tokenizer_is_not_judged_token_by_token(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    base, other = checkpoint(), tmp_path / "bytes"
    shutil.copytree(base, other)
    file = other / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["model"]["merges"] = []  # every byte a token
    file.write_text(json.dumps(tokenizer))
    reporter = Reporter()
    config = CompareConfig(model=str(base), others=(str(other),), methods=("pi:factor=2",), passkey=False, **SMALL)
    record = compare_methods(config, tmp_path / "run", reporter).record
    row = record["rows"][-1]
    assert row["model"] == str(other) and row["perplexity"][0]["perplexity"] is not None
    assert row["reach"]["models"] is None and row["short_delta"] is None
    bits = [point["bits_per_byte"] for each in record["rows"] for point in each["perplexity"]]
    assert not record["same_tokens"] and all(value > 0 for value in bits)
    assert any(
        "Bits" in getattr(part, "title", "")
        for part in comparison_tables(read_as(ComparisonRecord, record, "it", "compare-methods"))
    )
    assert any("other tokens" in note and str(other) in note for note in reporter.notes)


def test_every_factor_with_every_method_that_names_none(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    config = CompareConfig(
        model=str(checkpoint()), factor=[2, 4], methods=("pi", "yarn:factor=3"), passkey=False, **SMALL
    )  # type: ignore[arg-type]
    assert config.factors == (2.0, 4.0) and config.factor is None
    record = compare_methods(config, tmp_path / "run").record
    assert [row["method"] for row in record["rows"]] == ["none", "pi:factor=2", "pi:factor=4", "yarn:factor=3"]
    assert record["factors"] == [2.0, 4.0] and record["factor"] is None and record["target_length"] == 512
    alone = compare_methods(
        CompareConfig(model=config.model, factor=[2], methods=("pi",), passkey=False, **SMALL),  # type: ignore[arg-type]
        tmp_path / "alone",
    ).record
    assert alone["factor"] == 2.0 and without_times(alone["rows"][1]) == without_times(record["rows"][1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"factor": [2, 4], "target_length": 512}, "contradict"),
        ({"others": ("builtin:tiny",)}, "named twice"),
        ({"others": ("nowhere",)}, "nowhere"),
        ({"min_accuracy": 0.9, "passkey": False}, "no-passkey"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        compare_methods(CompareConfig(model="builtin:tiny", **change), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_further_model_that_cannot_be_loaded_costs_only_its_own_cells(
    checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with its files is found before; what only its class finds, as for want of memory, when it loads."""
    base, broken, good = checkpoint(), tmp_path / "broken", tmp_path / "good"
    for copy in (broken, good):
        shutil.copytree(base, copy)

    def load(source: Any, options: Any) -> Any:
        if source.name == str(broken):
            raise ConfigError(f"{source.name} cannot be loaded.")
        return load_model(source, options)

    monkeypatch.setattr("ropectl.evaluate.setup.load_model", load)
    models = {"model": str(base), "others": (str(broken), str(good))}
    config = CompareConfig(**models, methods=("pi:factor=2",), passkey=False, **SMALL)  # type: ignore[arg-type]
    comparison = compare_methods(config, tmp_path / "run")
    rows = {row["model"]: row for row in comparison.record["rows"]}
    assert comparison.num_failed == 2 and all("cannot be loaded" in message for message in rows[str(broken)]["errors"])
    assert rows[str(good)]["perplexity"] == comparison.record["rows"][0]["perplexity"]
    monkeypatch.undo()
    repaired = compare_methods(config, tmp_path / "run", retry_failed=True)
    assert repaired.num_failed == 0
