"""``eval-perplexity --split``: the numbers of windows are those of documents that hold just them, under every protocol."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.data.sources import open_source
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from tests.evaluate.measured import CountingReporter
from tests.tolerances import ONE_PASS

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files; of windows of 120 tokens, one holds many, one a few, one none. All characters are single bytes."""
    folder = tmp_path_factory.mktemp("books")
    texts = [document.text for _, document in zip(range(9), open_source("builtin:stdlib"), strict=False)]
    long = "".join(text.encode("ascii", "ignore").decode() for text in texts)
    for name, text in (("a.txt", long[:9000]), ("b.txt", long[9000:10_000]), ("c.txt", long[:100])):
        (folder / name).write_text(text)
    return folder


def numbers(record: dict[str, Any]) -> list[dict[str, Any]]:
    return record["points"] + record["unscaled"]


@pytest.mark.parametrize("bos", ["auto", "never"])
@pytest.mark.parametrize(
    ("protocol", "more"),
    [
        ("prefix", {}),
        ("tail", {}),
        ("sliding", {"stride": 16}),
        ("overlapping", {"stride": 30}),
        ("key-tokens", {"short_context": 20}),
    ],
)
def test_windows_are_documents_of_their_own(
    books: Path, tokenizer: Any, tmp_path: Path, protocol: str, more: dict[str, Any], bos: Any
) -> None:
    """``--split`` on files, and the same windows as rows of tokens, cut here: number by number."""
    shared: dict[str, Any] = {"protocol": protocol, "lengths": (40, 100), "method": "yarn:factor=2", "bos": bos, **more}
    cut = evaluate_perplexity(PerplexityConfig(text=str(books), split=120, documents=9, batch_size=2, **shared))
    manifest = cut["manifest"]
    room = 120 - (bos == "auto")
    rows, names = [], []
    for name, share in (("a.txt", 7), ("b.txt", 2)):
        ids = tokenizer.encode((books / name).read_text(), add_special_tokens=False)
        count = len(ids) // room
        assert count == 2 if name == "b.txt" else count > 20
        for section in range(share):
            number = math.floor(section * count / share)
            rows.append(ids[number * room : (number + 1) * room])
            names.append(f"{books / name}[{number + 1}]")
    assert manifest["documents"] == names and manifest["document_tokens"] == [120] * 9
    assert manifest["split"] == 120 and manifest["clusters"] == [0] * 7 + [1] * 2
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in rows))
    size = {"document_tokens": 120} if protocol in ("sliding", "overlapping") else {}
    if (
        protocol == "tail"
    ):  # which scores the end of a document: without --split, documents are cut at the longest length
        shared["lengths"] = (40, 100, 120)
        cut = evaluate_perplexity(PerplexityConfig(text=str(books), split=120, documents=9, batch_size=2, **shared))
    alone = evaluate_perplexity(
        PerplexityConfig(text=str(tmp_path / "rows.jsonl"), documents=9, batch_size=2, **shared, **size)
    )
    assert "split" not in alone["manifest"] and "clusters" not in alone["manifest"]
    intervals = {"ci_low", "ci_high", "gain_ci_low", "gain_ci_high"}  # over documents, not over windows
    for ours, theirs in zip(numbers(cut), numbers(alone), strict=True):
        assert {k: v for k, v in ours.items() if k not in intervals} == {
            k: v for k, v in theirs.items() if k not in intervals
        }
    assert protocol == "key-tokens" or all(point["num_bytes"] for point in numbers(cut))
    assert cut["short_delta"] == alone["short_delta"]
    if protocol in ("prefix", "tail"):
        assert cut["points"][-1]["num_windows"] == cut["points"][-1]["num_documents"] == 9


def test_losses_of_a_window_in_the_middle_are_those_of_a_plain_pass(books: Path, tokenizer: Any) -> None:
    """Without any of the code under test: the third window of a file, after BOS, through the model as it is."""
    record = evaluate_perplexity(PerplexityConfig(text=str(books / "a.txt"), split="auto", lengths=(64, 128)))
    names = record["manifest"]["documents"]
    index = names.index(f"{books / 'a.txt'}[3]")
    ids = tokenizer.encode((books / "a.txt").read_text(), add_special_tokens=False)
    window = [tokenizer.bos_token_id, *ids[2 * 127 : 3 * 127]]
    model = AutoModelForCausalLM.from_pretrained(TINY_MODEL_DIR, dtype=torch.float32)
    with torch.no_grad():
        logs = model(input_ids=torch.tensor([window])).logits[0].double().log_softmax(-1)
    for point in record["points"]:
        targets = range(1, point["context_length"])
        expected = -sum(logs[place - 1, window[place]].item() for place in targets)
        assert point["document_nll_sums"][index] == pytest.approx(expected, rel=ONE_PASS)
    assert record["manifest"]["clusters"] == [0] * len(names)


def test_bytes_are_those_of_the_scored_text(tmp_path: Path, tokenizer: Any) -> None:
    """Characters of several bytes and tokens, windows that begin between them: counted from the offsets of the whole."""
    text = "Zwölf Boxkämpfer 🥊 jagen 三十六计 durch den großen Sylter Deich.\n" * 40
    (tmp_path / "text.txt").write_text(text)
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    ends = [0]
    for _, end in offsets:
        ends.append(max(ends[-1], end))
    for protocol in ("prefix", "tail"):
        record = evaluate_perplexity(
            PerplexityConfig(text=str(tmp_path / "text.txt"), split=61, lengths=(31, 45), protocol=protocol)
        )
        names = record["manifest"]["documents"]
        firsts = [
            60 * (int(name.partition("[")[2][:-1]) - 1) for name in names
        ]  # token of the text that it begins with
        assert 1 < len(names) == min(36, len(offsets) // 60)
        for point in record["points"]:
            length = point["context_length"]
            if protocol == "prefix":
                scored = [(first, first + length - 1) for first in firsts]
            else:
                scored = [(first + 60 - 15, first + 60) for first in firsts]
            expected = sum(len(text[ends[start] : ends[stop]].encode()) for start, stop in scored)
            assert point["num_bytes"] == expected and point["num_tokens"] == sum(b - a for a, b in scored)


def test_what_people_see(ropectl: Run, books: Path, tmp_path: Path) -> None:
    arguments = ["eval-perplexity", "--text", str(books), "--length", "64,120", "--device", "cpu"]
    code, out, err = ropectl(*arguments, "--split", "auto", "--documents", "9", "-o", tmp_path / "cut.json")
    assert code == 0 and "9 windows of 2 documents of" in " ".join(out.split()) and "it would give" not in err
    assert "(120 tokens each)" in " ".join(out.split())
    again = ropectl(*arguments, "--split", "120", "--documents", "9", "--format", "json")
    assert json.loads(again[1])["points"] == json.loads((tmp_path / "cut.json").read_text())["points"]
    code, out, err = ropectl(*arguments)
    assert code == 0 and "2 documents of" in " ".join(out.split())
    assert "2 documents of" in err and "(a file is a document): they would give" in err and "--split auto" in err
    code, _, err = ropectl(*arguments, "--split", "63", "-o", tmp_path / "none.json")
    assert code == 2 and "split = 63 is less than the shortest length, 64" in err and err.count("Error") == 1
    assert not (tmp_path / "none.json").exists()


def test_progress_counts_the_tokens_of_windows(books: Path) -> None:
    for protocol in ("prefix", "tail", "sliding", "key-tokens"):
        reporter = CountingReporter()
        config = PerplexityConfig(text=str(books), split="auto", protocol=protocol, lengths=(64, 120), documents=7)
        evaluate_perplexity(config, reporter)
        assert reporter.total == reporter.done > 0, protocol
