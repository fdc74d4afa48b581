"""Records of windows: tables, page and figures say windows, and of how many documents they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.report.document import Sentence
from ropectl.report.page.side_by_side import joint_tables
from ropectl.report.runs_read import read_runs
from ropectl.report.views.eval_perplexity import VIEW, perplexity_tables
from ropectl.report.writers.terminal import terminal_lines
from tests.report import records
from tests.report.page.reader import problems, read
from tests.report.records_to_draw import comparison, drawings_of, drawings_of_runs, perplexity_record

#: What a manifest says of 36 windows, of one document and of three.
OF_ONE = {"split": 2048, "clusters": [0] * 36, "documents": [f"novel.txt[{number}]" for number in range(1, 37)]}
OF_THREE = OF_ONE | {"clusters": [number // 12 for number in range(36)]}


def with_windows(record: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    for row in record.get("rows", [record]):
        for point in (*row.get("perplexity", ()), *row.get("tail", ()), *row.get("points", ())):
            point["num_documents"] = 36
    return record | {"manifest": record.get("manifest", {}) | manifest}


@pytest.mark.parametrize(
    ("manifest", "words"),
    [(OF_ONE, "36 windows of 1 document of"), (OF_THREE, "36 windows of 3 documents of"), ({}, "documents of")],
)
def test_the_table_of_perplexities(manifest: dict[str, Any], words: str) -> None:
    record = records.made(records.perplexity() | ({"manifest": manifest} if manifest else {}))
    parts = VIEW.all_parts(record)
    text = " ".join("\n".join(line.plain for line in terminal_lines(parts, 80)).split())
    assert f"{words} hf:some/name:train#text" in text and ("(2048 tokens each)" in text) == bool(manifest)
    heads = [column.head for column in perplexity_tables(record)[0].columns]
    assert ("windows" in heads, "documents" in heads) == (bool(manifest), not manifest)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(("manifest", "drawn"), [(OF_ONE, "windows"), (OF_THREE, "documents")])
def test_the_page(tmp_path: Path, page_of: Any, manifest: dict[str, Any], drawn: str) -> None:
    count = len(set(manifest["clusters"]))
    for name, record in (("c", records.comparison()), ("p", records.perplexity())):
        (tmp_path / f"{name}.json").write_text(json.dumps(with_windows(record, manifest)))
        html = page_of(tmp_path / f"{name}.json")
        text = read(html).body_text
        assert problems(html) == []
        assert f"36 windows of {count} document{'s' if count > 1 else ''}, evenly spread over each" in text
        assert "novel.txt[36]" in text and "The 36 windows" in text and "2,048" in text
    text = read(page_of(tmp_path / "c.json")).body_text
    assert "disjoint windows of 2,048 tokens" in text and f"Intervals are over {drawn}." in text
    assert "the first N tokens of each window" in text and "of each document" not in text


@pytest.mark.usefixtures("no_figures")
def test_the_page_of_whole_documents(tmp_path: Path, page_of: Any) -> None:
    (tmp_path / "c.json").write_text(json.dumps(records.comparison()))
    text = read(page_of(tmp_path / "c.json")).body_text
    assert "Documents scored12" in text and "the first N tokens of each document in one window" in text
    assert "Windows scored" not in text and "disjoint" not in text


@pytest.mark.parametrize(("manifest", "drawn"), [(OF_ONE, "windows"), (OF_THREE, "documents")])
def test_captions_of_figures(manifest: dict[str, Any], drawn: str) -> None:
    for record in (comparison(), perplexity_record()):
        found = [each for each in drawings_of(with_windows(record, manifest)) if each.name.startswith("perplexity")]
        assert found
        for drawing in found:
            assert f"intervals over {drawn}" in drawing.caption and "36 windows a point" in drawing.caption
            assert "each window" in drawing.caption and "each document" not in drawing.caption


def test_captions_of_windows_beside_documents() -> None:
    found = drawings_of_runs({"a": perplexity_record(), "b": with_windows(perplexity_record(), OF_ONE)})
    caption = next(each.caption for each in found if each.name == "perplexity")
    assert "of each text;" in caption and "over texts" in caption and "12 to 36 texts a point" in caption


def test_runs_side_by_side(tmp_path: Path) -> None:
    ours = records.comparison() | {"manifest": {"tokens_sha256": "aa"}}
    theirs = with_windows(records.comparison(), OF_ONE | {"tokens_sha256": "bb"})
    for name, record in (("a", ours), ("b", theirs)):
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    blocks = joint_tables(read_runs([tmp_path / "a.json", tmp_path / "b.json"]))
    assert any(
        isinstance(each, Sentence) and "a.json: 12 documents; b.json: 36 windows" in each.text for each in blocks
    )
