"""Several runs side by side: what each comes to, and which of their numbers compare."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ropectl.report.document import Row, Sentence, Table
from ropectl.report.page.side_by_side import joint_tables
from ropectl.report.runs_read import read_runs
from ropectl.report.tables.words import sentences
from tests.report import records

LONG_AGO = [{"step": 1, "loss": 3.5}, {"step": 2, "loss": 2.25}, {"step": 2, "validation": {}}]


def scored(sha: str, documents: int, methods: tuple[str, ...] = ("none", "pi:factor=4")) -> dict[str, Any]:
    record = records.comparison(methods, lengths=(256, 1024))
    for row in record["rows"]:
        row["perplexity"] = [
            records.point(entry["context_length"], entry["perplexity"], entry["beyond_capacity"], documents)
            for entry in row["perplexity"]
        ]
    own = {"manifest": {"tokens_sha256": sha}, "pick": None}
    return record | own


@pytest.fixture
def joined(tmp_path: Path) -> Any:
    """Returns the blocks of records side by side, named a.json, b.json and so on."""

    def made(*given: dict[str, Any]) -> list[Any]:
        places = []
        for name, record in zip("abcdef", given, strict=False):
            places.append(tmp_path / f"{name}.json")
            places[-1].write_text(json.dumps(record))
        return joint_tables(read_runs(places))

    return made


def tables(blocks: list[Any], title: str) -> Iterator[Row]:
    return iter(next(block for block in blocks if isinstance(block, Table) and block.title == title).rows)


def bold(blocks: list[Any]) -> list[tuple[str, int]]:
    return [
        (row.name, number)
        for row in tables(blocks, "Perplexity")
        for number, cell in enumerate(row.cells)
        if cell.is_best
    ]


def test_the_best_is_that_of_the_same_documents(joined: Any) -> None:
    first, second = scored("aa", 12), scored("aa", 12, ("pi:factor=4",))
    second["rows"][0]["perplexity"][0] = records.point(256, 5.0)
    blocks = joined(first, second)
    assert bold(blocks) == [("b.json: pi", 0)], "two of three share the best at 1024"
    assert not any(isinstance(block, Sentence) and "No best" in block.text for block in blocks)


@pytest.mark.parametrize(("sha", "documents"), [("bb", 12), ("aa", 8)])
def test_other_documents_are_not_ranked(joined: Any, sha: str, documents: int) -> None:
    blocks = joined(scored("aa", 12), scored(sha, documents))
    assert bold(blocks) == []
    (words,) = [block.text for block in blocks if isinstance(block, Sentence) and block.tone == "warning"]
    assert "256, 1,024" in words and f"a.json: 12 documents; b.json: {documents} documents" in words


def test_past_the_capacity_is_marked(joined: Any) -> None:
    blocks = joined(scored("aa", 12), scored("aa", 12))
    for title in ("Perplexity", "Passkeys found"):
        marks = {row.name: [cell.mark == "*" for cell in row.cells] for row in tables(blocks, title)}
        assert marks["a.json: none"] == [False, True] and marks["b.json: pi"] == [False, False]
    assert any(isinstance(block, Sentence) and block.text.startswith("* past") for block in blocks)


def test_trainings_say_how_far_they_are(tmp_path: Path) -> None:
    unfinished, finished = tmp_path / "half.run", tmp_path / "whole"
    unfinished.mkdir()
    finished.mkdir()
    settings = {"model": "builtin:tiny", "method": "yarn:factor=4", "steps": 1300}
    (unfinished / "run.json").write_text(json.dumps({"settings": settings, "versions": {}}))
    (unfinished / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LONG_AGO))
    record = records.finetuning() | {"schema_version": 1}
    record["training"]["settings"] = {"steps": 450}
    (finished / "ropectl.json").write_text(json.dumps(record))
    rows = list(tables(joint_tables(read_runs([unfinished, finished])), "What each run comes to"))
    assert [[cell.text for cell in row.cells] for row in rows] == [
        ["builtin:tiny", "yarn:factor=4", "Unfinished: 2 of 1,300 steps; last loss 2.2500 nats a token."],
        ["an/organisation", records.LONG, "400 of 450 steps; loss of the last ten 2.8750 nats a token."],
    ]


def test_verdicts_are_sentences(joined: Any) -> None:
    record = scored("aa", 12) | {"verdict": ["models up to 512 tokens (8 documents).", "Perplexity: no change"]}
    first, second = tables(joined(record, record | {"verdict": []}), "What each run comes to")
    assert first.cells[2].text == "Models up to 512 tokens (8 documents). Perplexity: no change."
    assert second.cells[2].text == ""
    assert sentences(["dynamic-yarn computes all", " ", "so it is!"]) == "dynamic-yarn computes all. So it is!"


def test_single_runs_of_the_same_text_and_prompts_are_paired(joined: Any) -> None:
    """Losses by document, passkeys by prompt, against the first of their kind; what differs in text or prompts is no pair."""
    runs = []
    for value, right, tokens in ((9.0, 5, "aa"), (10.0, 1, "aa"), (8.0, 5, "bb")):
        loss = records.perplexity() | {"points": [records.point(256, value)], "unscaled": []}
        loss["manifest"] = loss.get("manifest", {}) | {"tokens_sha256": tokens}
        found = records.passkey() | {"lengths": [records.retrieval(256, [right] * 5)]}
        found["manifest"] = found.get("manifest", {}) | {"prompts_sha256": tokens}
        runs += [loss, found]
    blocks = joined(*runs)
    pairs = {b.title: b for b in blocks if isinstance(b, Table) and "in pairs" in b.title}
    assert [title.partition(",")[0] for title in pairs] == ["Loss against a.json", "Passkeys against b.json"]
    losses, keys = pairs.values()
    assert [row.name for row in losses.rows] == ["c.json"] and [row.name for row in keys.rows] == ["d.json"]
    assert (
        losses.rows[0].cells[0].value == pytest.approx(math.log(10 / 9), abs=0.003) and not losses.rows[0].cells[0].mark
    )
    assert keys.rows[0].cells[0].value == pytest.approx(-0.8) and keys.rows[0].cells[0].tone == "bad"


def test_tasks_of_the_same_prompts_are_paired(joined: Any) -> None:
    first, second = records.tasks(1), records.tasks(1)
    for record, right in ((first, 1.0), (second, 0.0)):
        for entry in (entry for task in record["tasks"] for entry in task["lengths"]):
            entry["scores"] = [right] * 20
    blocks = joined(first, second)
    found = {b.title: b for b in blocks if isinstance(b, Table)}
    names = {task["task"] for task in first["tasks"]}
    assert {f"{name}: score in %" for name in names} <= found.keys()
    pairs = [table for title, table in found.items() if "score against a.json, in pairs" in title]
    assert len(pairs) == len(names) and all(row.cells[0].value == -1.0 for table in pairs for row in table.rows)
