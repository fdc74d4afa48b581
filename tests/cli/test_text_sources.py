"""The same text from any kind of source gives the same numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from ropectl.data.sources import open_source


@pytest.mark.process
def test_text_and_tokens_give_the_same_perplexity(
    ropectl: Callable[..., tuple[int, str, str]], tokenizer: Any, tmp_path: Path
) -> None:
    texts = [document.text[:3000] for _, document in zip(range(2), open_source("builtin:stdlib"), strict=False)]
    tokens = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    Dataset.from_dict({"text": texts}).save_to_disk(tmp_path / "saved")
    Dataset.from_dict({"input_ids": tokens}).to_parquet(tmp_path / "tokens.parquet")
    (tmp_path / "hub").mkdir()
    Dataset.from_dict({"body": texts}).to_parquet(tmp_path / "hub" / "test.parquet")
    points = []
    for source in ("saved", "tokens.parquet", "hf:hub"):
        name = f"hf:{tmp_path / 'hub'}:test#body" if source == "hf:hub" else str(tmp_path / source)
        code, out, err = ropectl("eval-perplexity", "--length", "64,128", "--text", name, "--format", "json")
        assert code == 0, err
        points.append(json.loads(out)["points"])
    assert points[0] == points[1] == points[2] and points[0][0]["num_documents"] == 2


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("hf:no-such-owner/no-such-name", ["no-such-owner/no-such-name", "local file"]),
        ("hf:", ["hf:NAME"]),
        ("tokens.jsonl", ["token 5000", "1024 tokens"]),
    ],
)
def test_bad_sources_are_one_message(
    ropectl: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tokens.jsonl").write_text(json.dumps({"input_ids": [5000] * 200}))
    code, out, err = ropectl("eval-perplexity", "--length", "64", "--text", source, "--format", "json")
    message = " ".join(err.split())
    assert code == 2 and not out and "Traceback" not in err
    assert all(part in message for part in parts), message
