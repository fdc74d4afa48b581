"""``eval-perplexity`` as people use it: records, tables, gates, refusals, every text source."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.data.sources import open_source
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from ropectl.evaluate.perplexity.find_protocol import all_protocols
from ropectl.timing.operations import NOTHING
from tests.evaluate.measured import CountingReporter
from tests.tolerances import EXACT

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

Run = Callable[..., tuple[int, str, str]]
SMALL = ("eval-perplexity", "--documents", "2", "--device", "cpu")


def record(ropectl: Run, *arguments: str) -> dict[str, Any]:
    code, out, err = ropectl(*SMALL, *arguments, "--format", "json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_a_number_says_how_it_was_made(ropectl: Run) -> None:
    """Protocol, stride, preset, BOS, documents, tokens of each and scored, type, seed, versions, command."""
    found = record(ropectl, "--preset", "pi", "--length", "300,400", "--document-tokens", "900")
    assert (found["protocol"], found["preset"], found["stride"]) == ("sliding", "pi", 256)
    assert found["bos"] == {"policy": "auto", "token_id": 0, "token": "<|bos|>"}
    manifest = found["manifest"]
    assert len(manifest["document_tokens"]) == 2 and max(manifest["document_tokens"]) == 900
    scored = [size - 1 for size in manifest["document_tokens"]]
    assert [point["document_num_tokens"] for point in found["points"]] == [scored, scored]
    assert manifest["dtype"] == "float32" and manifest["device"] == "cpu"
    assert manifest["bootstrap"] == {"resamples": 5000, "seed": 0}
    assert manifest["versions"]["torch"] and manifest["command"] and len(manifest["tokens_sha256"]) == 64
    again = evaluate_perplexity(PerplexityConfig(**manifest["config"]))
    assert again["points"] == found["points"], "the settings in a record make the same numbers"


def test_moving_windows_take_a_part_of_each_document(ropectl: Run) -> None:
    """Twice the longest length by default, whatever there is; the same part at every length."""
    found = record(ropectl, "--protocol", "sliding", "--length", "64,300")
    assert found["stride"] == 32 and all(300 <= size <= 600 for size in found["manifest"]["document_tokens"])
    assert found["manifest"]["document_tokens"][0] == 600
    assert {point["num_tokens"] for point in found["points"]} == {sum(found["manifest"]["document_tokens"]) - 2}


def test_tail_gives_a_verdict_in_words(ropectl: Run) -> None:
    """What a method costs up to the trained length is measured and said, whatever was asked for."""
    found = record(ropectl, "--protocol", "tail", "-m", "pi:factor=4", "--length", "256,512,1k")
    assert found["reach"]["models"] == 0 and found["short_delta"] > 1
    assert [one["outcome"] for one in found["reach"]["models_at"]] == ["not resolved"] * 3, (
        "two documents resolve nothing"
    )
    assert [point["context_length"] for point in found["unscaled"]] == [256, 512]
    assert (
        "models: not resolved at any evaluated length" in found["verdict"][0] and "few documents" in found["verdict"][0]
    )
    assert "models at 512 tokens: not resolved" in found["verdict"][1]
    assert "against the unscaled model: +" in found["verdict"][2]
    assert found["points"][2]["gain_over_trained"] is not None
    plain = record(ropectl, "--protocol", "tail", "--length", "256,512,1k")
    assert plain["reach"]["models"] == 512 and plain["unscaled"] == [] and plain["short_delta"] is None
    assert plain["verdict"][0].startswith("models up to 512 tokens: given so many, the same text is predicted no worse")
    unscaled = [point["nll_sum"] for point in found["unscaled"]]
    assert unscaled == pytest.approx([point["nll_sum"] for point in plain["points"][:2]], rel=EXACT)
    loose = record(ropectl, "--protocol", "tail", "-m", "pi:factor=4", "--length", "256,512,1k", "--tolerance", "9")
    assert loose["reach"]["models"] == 1024 and "within 9 nats" in loose["verdict"][0]
    other = record(ropectl, "--protocol", "tail", "-m", "pi:factor=4", "--length", "256,1k")
    assert other["reach"]["models"] is None and other["points"][1]["gain_over_trained"] is None


def test_the_unscaled_model_is_measured_by_every_protocol_with_fixed_targets(ropectl: Run) -> None:
    for protocol in ("prefix", "sliding", "overlapping"):
        found = record(ropectl, "--protocol", protocol, "-m", "pi:factor=4", "--length", "128,600")
        assert [point["context_length"] for point in found["unscaled"]] == [128]
        assert found["short_delta"] == pytest.approx(
            found["points"][0]["perplexity"] / found["unscaled"][0]["perplexity"] - 1
        )
        assert not record(ropectl, "--protocol", protocol, "-m", "pi:factor=4", "--length", "600")["unscaled"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--preset", "yarn", "-m", "yarn:factor=4", "--length", "16..1k"),
        ("--preset", "longlora", "--length", "300,600"),
        ("--preset", "pi", "--length", "300,600"),
        ("--protocol", "tail", "-m", "yarn:factor=4", "--length", "256,512,1k"),
        ("--protocol", "key-tokens", "--length", "600,1k"),
        ("--length", "64,100000"),
    ],
    ids=" ".join,
)
def test_what_people_see_fits_and_loses_nothing(ropectl: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = ropectl(*SMALL, *arguments)
    assert code == 0, err
    assert all(len(line) <= 80 for line in out.splitlines()) and "…" not in out
    words = " ".join(out.split())
    assert "95 % interval" in words and "bits/byte" in words and "(--bos " in words and "2 documents of" in words
    found = record(ropectl, *arguments)
    for sentence in found["verdict"]:
        assert sentence in words
    for point in found["points"]:
        assert str(point["num_tokens"]) in words
    if "yarn" in arguments[1]:
        assert "window mean: exp of the mean" in words and "weighted by token" in words
        assert "begins with <|bos|>, never scored (--bos available)" in words
        assert "1 to 15" in words and "512 to 1023" in words and f"{found['short_delta']:+.1%} at worst, at " in words
    if "longlora" in arguments:
        assert "begins without a BOS token (--bos never)" in words
    if "tail" in arguments:
        assert "Gain over 512 tokens" in words
    if "key-tokens" in arguments:
        assert "chooses its own key tokens" in " ".join(err.split())
        assert f"{found['points'][1]['num_candidates']}" in words


def test_gate(ropectl: Run, tmp_path: Path) -> None:
    """Exit code 3 and a line for each length that is over; the record is there all the same."""
    path = tmp_path / "r.json"
    code, out, err = ropectl(*SMALL, "--length", "64,512", "--fail-above", "2", "-o", str(path))
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    values = [point["perplexity"] for point in json.loads(path.read_text())["points"]]
    assert code == 3 and "perplexity" in out
    for line, n, value in zip(lines, (64, 512), values, strict=True):
        assert line.startswith(f"warning: The perplexity at {n} tokens is {value:.6g}, above 2 (--fail-above)")
    assert ropectl(*SMALL, "--length", "64,512", "--fail-above", "1e6")[0] == 0
    code, _, err = ropectl(*SMALL, "--length", "64,100k", "--fail-above", "1e6")
    assert code == 3 and "No perplexity was measured at 102400 tokens" in err
    assert ropectl(*SMALL, "--length", "64", "--fail-above", "0")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--protocol", "slide"), ("slide", "overlapping")),
        (("--preset", "yarn", "--protocol", "tail"), ("--preset yarn", "tail", "Leave out")),
        (("--preset", "pi", "--length", "200"), ("stride = 256", "200", "longer lengths")),
        (("--protocol", "sliding", "--stride", "64", "--length", "64"), ("stride = 64", "--stride 63")),
        (("--stride", "64"), ("--stride has no meaning in protocol prefix", "overlapping, sliding")),
        (("--protocol", "tail", "--document-tokens", "1k"), ("--document-tokens", "tail")),
        (("--key-model", "builtin:tiny"), ("--key-model", "key-tokens")),
        (("--tolerance", "0.1"), ("--tolerance", "tail")),
        (
            ("--protocol", "sliding", "--document-tokens", "100", "--length", "64,128"),
            ("document-tokens = 100", "128 or more"),
        ),
        (("--protocol", "key-tokens", "--short-context", "64", "--length", "64"), ("short-context = 64",)),
        (("--protocol", "sliding", "--stride", "0"), ("stride", "at least 1")),
        (("--protocol", "sliding", "--document-tokens", "many"), ("many",)),
    ],
    ids=lambda value: " ".join(value),
)
def test_what_cannot_be_is_one_message_before_weights_load(
    ropectl: Run, tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    model = tmp_path / "model"
    shutil.copytree(TINY_MODEL_DIR, model)
    (model / "model.safetensors").unlink()
    code, out, err = ropectl("eval-perplexity", str(model), *arguments)
    assert code == 2 and not out and err.startswith("Error: ") and "Traceback" not in err
    assert len(err.strip().splitlines()) <= 3 and all(word in err for word in words), err


def test_another_model_chooses_the_key_tokens(ropectl: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(TINY_MODEL_DIR, other)
    common = ("--protocol", "key-tokens", "--length", "512,700", "--short-context", "64", "-m", "yarn:factor=2")
    own = record(ropectl, "--protocol", "key-tokens", "--length", "512,700", "--short-context", "64")
    found = record(ropectl, *common, "--key-model", str(other))
    assert (
        "chooses key tokens past the length that it is made for (512 tokens)"
        in ropectl(*SMALL, *common, "--key-model", str(other))[2]
    )
    assert [p["document_num_tokens"] for p in found["points"]] == [p["document_num_tokens"] for p in own["points"]]
    assert own["points"][0]["num_tokens"] > 0
    assert found["points"][0]["nll_sum"] != own["points"][0]["nll_sum"], "other positions, the same targets"
    assert found["manifest"]["config"]["key_model"] == str(other)
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    first, second = list(tokenizer["model"]["vocab"])[300:302]
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    code, _, err = ropectl(*SMALL, *common, "--key-model", str(other))
    assert code == 2 and "another tokenizer" in err


@pytest.mark.parametrize("protocol", all_protocols())
def test_every_text_source_serves_every_protocol(tokenizer: Any, tmp_path: Path, protocol: str) -> None:
    """The same two texts, of uneven length, as files, rows, a saved data set and tokens; and the built-in text."""
    texts = [d.text[:size] for d, size in zip(open_source("builtin:stdlib"), (1500, 900), strict=False)]
    folder = tmp_path / "texts"
    folder.mkdir()
    for index, text in enumerate(texts):
        (folder / f"{index}.txt").write_text(text)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    Dataset.from_dict({"text": texts}).save_to_disk(tmp_path / "saved")
    tokens = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    Dataset.from_dict({"input_ids": tokens}).to_parquet(tmp_path / "tokens.parquet")
    sources = [
        folder,
        f"{folder}/*.txt",
        f"{tmp_path}/rows.jsonl#body",
        tmp_path / "saved",
        tmp_path / "tokens.parquet",
    ]
    if protocol != "prefix":  # one of text and one of tokens
        sources = [sources[0], sources[-1]]
    results = [
        evaluate_perplexity(
            PerplexityConfig(text=str(source), protocol=protocol, lengths=(40, 100), method="yarn:factor=2")
        )
        for source in sources
    ]
    first = results[0]
    assert all(point["num_documents"] == 2 for point in first["points"])
    assert first["points"][1]["perplexity"] is not None or protocol == "key-tokens"
    if protocol != "key-tokens":
        assert all(point["bits_per_byte"] > 0 for point in first["points"]), "also of tokens without their text"
    for other in results[1:]:
        assert other["points"] == first["points"] and other["unscaled"] == first["unscaled"]
        assert other["manifest"]["tokens_sha256"] == first["manifest"]["tokens_sha256"]
    (single,) = evaluate_perplexity(PerplexityConfig(text=str(folder / "0.txt"), protocol=protocol, lengths=(100,)))[
        "points"
    ]
    assert single["num_documents"] == 1 and single["ci_low"] is None


def test_progress_counts_all_tokens() -> None:
    for protocol in all_protocols():
        reporter = CountingReporter()
        evaluate_perplexity(
            PerplexityConfig(protocol=protocol, lengths=(64, 150), documents=2, method="dynamic-ntk"), reporter
        )
        assert reporter.total == reporter.done > 0, protocol
        assert reporter.cost == reporter.spent != NOTHING, protocol
