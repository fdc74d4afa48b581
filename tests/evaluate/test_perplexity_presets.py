"""Presets against the formulas of the authors' scripts, written down again with transformers' own loss."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.data.sources import open_source
from ropectl.data.tokens import DocumentSet, TokenizedDocument
from ropectl.errors import ConfigError
from ropectl.evaluate.config import PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from ropectl.evaluate.perplexity.find_protocol import all_protocols, find_protocol
from ropectl.evaluate.perplexity.presets import PRESETS, apply_preset
from ropectl.evaluate.perplexity.runner import measure_perplexity
from ropectl.evaluate.perplexity.windows import PerplexityRequest
from ropectl.evaluate.setup import Setup
from ropectl.hf.model.patch import apply_rope
from ropectl.records import PerplexityPoint
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.tolerances import AUTHORS_SCRIPT

pytestmark = pytest.mark.usefixtures("one_thread")

METHOD = parse_method("yarn:factor=4")


def mean_loss(model: LlamaForCausalLM, row: list[int], num_scored: int | None = None) -> float:
    """transformers' own mean loss over the last tokens of a row; over all but the first by default."""
    ids = torch.tensor([row])
    labels = ids.clone()
    if num_scored is not None:
        labels[:, :-num_scored] = -100
    with torch.no_grad():
        return float(model(input_ids=ids, labels=labels).loss)


def exp_of_mean(losses: list[float]) -> float:
    return math.exp(sum(losses) / len(losses))


def measured(
    model: LlamaForCausalLM,
    preset: str,
    geometry: RopeGeometry,
    documents: DocumentSet,
    lengths: list[int],
    stride: int,
) -> list[PerplexityPoint]:
    request = PerplexityRequest(METHOD, geometry, documents, lengths, stride)
    return measure_perplexity(model, find_protocol(PRESETS[preset].protocol), request)


def uneven(documents: DocumentSet) -> DocumentSet:
    sizes = (512, 401, 300, 333, 260)
    cut = [TokenizedDocument(d.name, d.input_ids[:n]) for d, n in zip(documents.documents, sizes, strict=True)]
    return DocumentSet(cut, 256, 5, 512, documents.bos_token_id)


@pytest.mark.process
def test_yarn_is_the_script_of_its_authors(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet
) -> None:
    """eval/perplexity.py --truncate: BOS and the first N - 1 tokens of each document, exp of the mean of mean losses."""
    lengths = [64, 128, 256, 512]
    points = measured(model, "yarn", geometry, documents, lengths, 256)
    for length, point in zip(lengths, points, strict=True):
        with apply_rope(model, METHOD, geometry=geometry):
            losses = [mean_loss(model, [0, *document.input_ids[1:length]]) for document in documents.documents]
        assert point.window_mean_perplexity == pytest.approx(exp_of_mean(losses), rel=AUTHORS_SCRIPT)
        assert point.perplexity == pytest.approx(point.window_mean_perplexity, rel=1e-9), "windows of equal size"
        assert point.num_windows == 5


@pytest.mark.process
def test_yarn_from_text_to_number(tokenizer: Any) -> None:
    """The whole command on the built-in model: the script's own tokenizing, of the documents that have enough tokens."""
    setup = Setup.of(PerplexityConfig(device="cpu"))
    record = evaluate_perplexity(
        PerplexityConfig(preset="yarn", documents=3, lengths=(100, 700), method="ntk:factor=2", device="cpu")
    )
    rows = (tokenizer(d.text, add_special_tokens=False)["input_ids"] for d in open_source("builtin:stdlib"))
    texts = list(islice((row for row in rows if len(row) >= 699), 3))
    with apply_rope(setup.model, parse_method("ntk:factor=2"), geometry=setup.geometry):
        for point in record["points"]:
            losses = [mean_loss(setup.model, [0, *text[: point["context_length"] - 1]]) for text in texts]
            assert point["window_mean_perplexity"] == pytest.approx(exp_of_mean(losses), rel=AUTHORS_SCRIPT)


@pytest.mark.process
def test_moving_windows_are_the_script_without_its_flag(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet
) -> None:
    """eval/perplexity.py without --truncate counts a first window of 255 tokens like a later one of 40."""
    stride, documents = 40, uneven(documents)
    (point,) = measured(model, "pi", geometry, documents, [256], stride)
    losses = []
    weighted, count = 0.0, 0
    with apply_rope(model, METHOD, geometry=geometry):
        for document in documents.documents:
            text, before = document.input_ids[1:], 0
            for begin in range(0, len(text), stride):
                end = min(begin + 255, len(text))
                losses.append(mean_loss(model, [0, *text[begin:end]], end - before))
                weighted, count = weighted + losses[-1] * (end - before), count + end - before
                before = end
                if end == len(text):
                    break
    assert point.window_mean_perplexity == pytest.approx(exp_of_mean(losses), rel=AUTHORS_SCRIPT)
    assert point.perplexity == pytest.approx(math.exp(weighted / count), rel=AUTHORS_SCRIPT)
    assert point.num_windows == len(losses)
    assert abs(point.perplexity / point.window_mean_perplexity - 1) > 100 * AUTHORS_SCRIPT, "they are not the same"


@pytest.mark.process
def test_longlora_is_the_mean_over_all_tokens_of_every_window(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet
) -> None:
    """eval.py: windows of N tokens, 256 apart, each scored from its second token on, nothing put before them."""
    plain = [TokenizedDocument(d.name, d.input_ids[1:]) for d in documents.documents]
    stride, documents = 60, DocumentSet(plain, 511, 5, 511, None)
    (point,) = measured(model, "longlora", geometry, documents, [128], stride)
    with apply_rope(model, METHOD, geometry=geometry):
        rows = [d.input_ids[i : i + 128] for d in documents.documents for i in range(0, 511 - 128 + 1, stride)]
        losses = [mean_loss(model, row) for row in rows]
    assert point.window_mean_perplexity == pytest.approx(exp_of_mean(losses), rel=AUTHORS_SCRIPT)
    assert (point.num_windows, point.num_tokens) == (len(rows), 127 * len(rows))


def test_presets_set_what_changes_a_number() -> None:
    settings = {name: apply_preset(PerplexityConfig(preset=name)) for name in PRESETS}
    assert {name: (s.protocol, s.stride, s.bos) for name, s in settings.items()} == {
        "pi": ("sliding", 256, "auto"), "yarn": ("prefix", None, "available"), "longlora": ("overlapping", 256, "never"),
    }  # fmt: skip
    assert all(apply_preset(resolved) == resolved for resolved in settings.values()), (
        "a record's settings can be used again"
    )
    assert all(preset.protocol in all_protocols() for preset in PRESETS.values())
    plain = PerplexityConfig(protocol="tail")
    assert apply_preset(plain) == plain


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "yarn", "protocol": "sliding"}, "--preset yarn sets protocol = prefix: protocol = sliding"),
        ({"preset": "pi", "stride": 128}, "--preset pi sets stride = 256: stride = 128"),
        ({"preset": "yarn", "stride": 128}, "--preset yarn has no stride: stride = 128"),
        ({"preset": "longlora", "bos": "always"}, "--preset longlora sets bos = never: bos = always"),
        ({"preset": "ntk"}, "preset = 'ntk' is not possible: allowed are pi, yarn, longlora"),
    ],
)
def test_what_contradicts_a_preset_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        apply_preset(PerplexityConfig(**given))  # type: ignore[arg-type]


def test_what_agrees_with_a_preset_is_not() -> None:
    config = PerplexityConfig(preset="pi", protocol="sliding", stride=256, bos="auto")
    assert apply_preset(config) == config
