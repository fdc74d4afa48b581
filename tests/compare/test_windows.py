"""A comparison on windows of documents: what its records say, that it is resumed, and that others stay as they were."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.compare.dry_run import estimate_comparison
from ropectl.compare.factory import model_cells
from ropectl.compare.plan import make_plan
from ropectl.compare.run import compare_methods
from ropectl.errors import ConfigError, DataError
from ropectl.evaluate import setup
from ropectl.evaluate.config import CompareConfig, PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from ropectl.records import ComparisonRecord
from ropectl.records.reading import read_as
from ropectl.report.page.commands import row_commands
from ropectl.report.runs_read import read_plan
from ropectl.reporter import Reporter
from ropectl.runs import content_id

from .test_compare import without_times


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One document of a few thousand words."""
    path = tmp_path_factory.mktemp("text") / "novel.txt"
    path.write_text(
        "\n".join(f"Line {i} of a tale in which {i * i % 97} things happen, one by one." for i in range(800))
    )
    return path


@pytest.fixture
def config(checkpoint: Callable[..., Path], novel: Path) -> CompareConfig:
    return CompareConfig(
        model=str(checkpoint()), text=str(novel), methods=("pi",), factor=2, lengths=(128, 256), passkey=False,
        split="auto", documents=9,
    )  # fmt: skip


def cell_ids(config: CompareConfig, **changes: Any) -> list[str]:
    """The names of the records of the text cells of a comparison of the first model."""
    plan = make_plan(config, Reporter())
    cells = [cell for own in model_cells(plan, plan.base).values() for cell in own]
    return [content_id({**cell.settings, **changes}) for cell in cells]


@pytest.mark.process
def test_records_name_windows_and_their_documents(config: CompareConfig, tmp_path: Path) -> None:
    record = compare_methods(config, tmp_path / "run").record
    for manifest in (record["manifest"], json.loads((tmp_path / "run" / "plan.json").read_text())["manifest"]):
        assert manifest["split"] == 256 and manifest["clusters"] == [0] * 9
        assert manifest["documents"][0] == f"{config.text}[1]" and len(set(manifest["documents"])) == 9
        assert manifest["config"]["split"] == "auto"
    assert read_as(ComparisonRecord, record, "it", "compare-methods").manifest.clusters == [0] * 9
    plan = read_plan(tmp_path / "run")
    assert plan is not None and plan.manifest.clusters == [0] * 9
    single = evaluate_perplexity(
        PerplexityConfig(
            model=config.model, method="pi:factor=2", text=config.text, lengths=(128, 256), split=256, documents=9
        )
    )
    assert single["points"] == record["rows"][1]["perplexity"]
    whole = compare_methods(config.model_copy(update={"split": None}), tmp_path / "whole").record
    assert "split" not in whole["manifest"] and "clusters" not in whole["manifest"]


@pytest.mark.process
def test_it_is_resumed(config: CompareConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured again, however the same windows are asked for."""
    first = compare_methods(config, tmp_path / "run").record
    monkeypatch.setattr(setup, "load_model", lambda *_: pytest.fail("weights were loaded"))
    assert compare_methods(config, tmp_path / "run").record == first
    named = compare_methods(config.model_copy(update={"split": 256}), tmp_path / "run").record
    assert named["manifest"]["cells"] == first["manifest"]["cells"] and named["rows"] == first["rows"]
    [model] = estimate_comparison(config, tmp_path / "run")["models"]
    assert model["finished"] == model["cells"] == 4


@pytest.mark.process
def test_commands_of_the_page_measure_the_same(config: CompareConfig, tmp_path: Path) -> None:
    record = read_as(ComparisonRecord, compare_methods(config, tmp_path / "run").record, "it", "compare-methods")
    lines = [command.line for command in row_commands(record, record.rows[1])]
    assert len(lines) == 2 and all("--split auto" in line and "--documents 9" in line for line in lines)


def test_other_windows_are_other_cells(config: CompareConfig) -> None:
    ids = cell_ids(config)
    assert ids == cell_ids(config) == cell_ids(config.model_copy(update={"split": 256}))
    for change in ({"split": 300}, {"split": 200}, {"documents": 8}, {"split": None}):
        assert not set(ids) & set(cell_ids(config.model_copy(update=change))), change


def test_the_documents_of_windows_are_part_of_a_cell(config: CompareConfig) -> None:
    """They decide its intervals."""
    plan = make_plan(config, Reporter())
    cells = model_cells(plan, plan.base)
    settings = [cell.settings for own in cells.values() for cell in own]
    assert all(each["clusters"] == [0] * 9 for each in settings)


#: The names of the cells of the comparison below before documents could be cut.
BEFORE = ["a4f2aa2619d363eb", "2d30db4122a73b89", "67ef354431ab7eb0", "226e3a28b9f8be2c"]


def test_whole_documents_are_the_cells_that_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run folders of before stay valid: without --split no setting of a cell is new."""
    monkeypatch.chdir(tmp_path)
    rows = [[0, *range(start, start + 700)] for start in (5, 100, 300)]
    Path("rows.jsonl").write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in rows))
    config = CompareConfig(
        text="rows.jsonl", device="cpu", factor=2, methods=("pi",), passkey=False, lengths=(128,), documents=None
    )
    assert cell_ids(config, versions={}, model_fingerprint="") == BEFORE
    assert cell_ids(config.model_copy(update={"documents": 12}), versions={}, model_fingerprint="") == BEFORE


@pytest.mark.process
def test_a_record_of_before_is_the_same_comparison(config: CompareConfig, tmp_path: Path) -> None:
    """It said the default number of documents, and nothing of windows; it is not put aside."""
    whole = config.model_copy(update={"split": None, "documents": None})
    file, reporter = tmp_path / "run" / "comparison.json", Reporter()
    first = compare_methods(whole, tmp_path / "run").record
    old = json.loads(file.read_text())
    old["manifest"]["config"]["documents"] = 12
    del old["manifest"]["config"]["split"]
    file.write_text(json.dumps(old))
    assert compare_methods(whole, tmp_path / "run", reporter).record == first
    assert not any("held another comparison" in note for note in reporter.notes)
    compare_methods(config, tmp_path / "run", reporter)
    assert any("held another comparison" in note for note in reporter.notes)


def test_what_is_said_beforehand(config: CompareConfig) -> None:
    def notes(**changes: Any) -> str:
        reporter = Reporter()
        make_plan(config.model_copy(update=changes), reporter)
        return "\n".join(reporter.notes)

    assert "verdict" not in notes() and "--split" not in notes()
    few = notes(documents=5)
    assert f"5 windows of 1 document of {config.text} scored, at 256 tokens: few for a verdict (at least 8)." in few
    whole = notes(split=None, documents=None)
    assert f"1 document of {config.text} scored, at 256 tokens: few for a verdict" in whole
    assert f"{config.text} is one document (a file is a document): it would give" in whole
    short = notes(split=200)
    assert "A window of 200 tokens (--split 200) holds no 256" in short and "--split 256" in short
    with pytest.raises(ConfigError, match="split = 100 is less than the shortest length, 128"):
        notes(split=100)
    with pytest.raises(DataError, match="holds no 256"):
        notes(split=200, strict=True)


def test_windows_of_few_documents_are_few(config: CompareConfig, novel: Path, tmp_path: Path) -> None:
    """Those of one document are drawn together, so that they count as one."""
    for name in "ab":
        shutil.copy(novel, tmp_path / f"{name}.txt")
    reporter = Reporter()
    make_plan(config.model_copy(update={"text": f"{tmp_path}/*.txt", "documents": None}), reporter)
    (note,) = [note for note in reporter.notes if "verdict" in note]
    assert note.startswith("36 windows of 2 documents of") and "few documents for a verdict (at least 8)" in note


@pytest.mark.process
def test_models_of_other_tokens_have_windows_of_their_own(
    config: CompareConfig, tmp_path: Path, checkpoint: Callable[..., Path]
) -> None:
    same, other = tmp_path / "same", tmp_path / "bytes"
    shutil.copytree(config.model, same)
    shutil.copytree(config.model, other)
    file = other / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["model"]["merges"] = []  # every byte a token
    file.write_text(json.dumps(tokenizer))
    reporter = Reporter()
    models = config.model_copy(update={"others": (str(same), str(other))})
    record = compare_methods(models, tmp_path / "run", reporter).record
    none, _, copy, bytewise = record["rows"]
    assert without_times(copy["perplexity"]) == without_times(none["perplexity"]) and not record["same_tokens"]
    assert bytewise["perplexity"][1]["num_documents"] == 9 and bytewise["perplexity"][1]["num_bytes"] == 9 * 255
    assert any(str(other) in note and "cut at other places" in note for note in reporter.notes)
    plan = make_plan(models, Reporter())
    assert [model.same_tokens for model in plan.models] == [True, True, False]
    assert all(model.documents.clusters == [0] * 9 for model in plan.models)
