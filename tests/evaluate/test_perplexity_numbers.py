"""Intervals, losses by position and bytes: against closed forms, enumeration and plain loops."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.data.documents import Document
from ropectl.data.selection import select_documents
from ropectl.data.tokens import DocumentSet, TokenizedDocument
from ropectl.evaluate.judging.statistics import mean_interval, perplexity_interval
from ropectl.evaluate.perplexity.tally import bin_edges
from ropectl.evaluate.perplexity.windows import PerplexityRequest
from ropectl.hf.model.patch import apply_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.evaluate.measured import measured, prefix_points, tail_points
from tests.tolerances import EXACT, ONE_PASS, UNIFORM

pytestmark = pytest.mark.usefixtures("one_thread")


def test_intervals_of_many_documents_are_normal() -> None:
    """Against the standard error of a ratio, and weighted by token: long documents count for more."""
    rng = random.Random(2)
    counts = [rng.randint(50, 150) for _ in range(400)]
    means = [rng.gauss(2.0, 0.3) for _ in counts]
    sums = [mean * count for mean, count in zip(means, counts, strict=True)]
    total, n = sum(counts), len(counts)
    ratio = sum(sums) / total
    variance = sum((s - ratio * c) ** 2 for s, c in zip(sums, counts, strict=True)) / (n - 1)
    error = 1.96 * math.sqrt(n * variance) / total
    low, high = mean_interval(sums, counts) or (0.0, 0.0)
    assert (low, high) == pytest.approx((ratio - error, ratio + error), abs=0.15 * error)
    interval = perplexity_interval(sums, counts)
    assert interval == pytest.approx((math.exp(low), math.exp(high)), rel=EXACT)


def test_a_loss_without_a_perplexity_has_the_largest() -> None:
    assert perplexity_interval([1e6, 1e6], [1, 1]) == pytest.approx((math.exp(700), math.exp(700)))
    assert perplexity_interval([1.0, 0.0], [1, 0]) is None


def test_bins_are_two_an_octave() -> None:
    assert bin_edges(2) == [1, 2] and bin_edges(5) == [1, 2, 3, 4, 5]
    assert bin_edges(100) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 100]
    assert bin_edges(128) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]


@pytest.mark.process
@pytest.mark.parametrize("spec", ["none", "dynamic-ntk"])
def test_positions_are_the_losses_of_a_naive_pass(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet, spec: str
) -> None:
    """One table per pass: a static method has one, at its longest length; each table sums to its point."""
    method, lengths = parse_method(spec), [50, 100, 300]
    points = prefix_points(model, method, geometry, documents, lengths, batch_size=2)
    assert [bool(p.positions) for p in points] == ([True] * 3 if method.depends_on_seq_len else [False, False, True])
    for point in points:
        if not point.positions:
            continue
        assert sum(b.nll_sum for b in point.positions) == pytest.approx(point.nll_sum, rel=EXACT)
        assert sum(b.num_tokens for b in point.positions) == point.num_tokens
        assert [b.start for b in point.positions[1:]] == [b.end for b in point.positions[:-1]]
        assert (point.positions[0].start, point.positions[-1].end) == (1, point.context_length)
        sums = dict.fromkeys((b.start for b in point.positions), 0.0)
        for document in documents.documents:
            row = document.input_ids[: point.context_length]
            with apply_rope(model, method, geometry=geometry, seq_len=len(row)), torch.no_grad():
                logs = model(input_ids=torch.tensor([row])).logits[0].double().log_softmax(-1)
            for position in range(1, len(row)):
                first = max(start for start in sums if start <= position)
                sums[first] -= logs[position - 1, row[position]].item()
        assert [b.nll_sum for b in point.positions] == pytest.approx(list(sums.values()), rel=ONE_PASS)
    tail = tail_points(model, method, geometry, documents, lengths, 20)
    assert not any(p.positions for p in tail), "windows of tail begin anywhere in a document"


def chosen(tokenizer: Any, *texts: str, length: int, bos: int | None = None, **more: Any) -> DocumentSet:
    source = [Document(f"d{i}", text) for i, text in enumerate(texts)]
    return select_documents(source, tokenizer, bos, [length], 9, **more)


TEXT = "Zwölf Boxkämpfer jagen Viktor 🥊 quer über den großen Sylter Deich. " * 3


def fold(documents: DocumentSet) -> DocumentSet:
    """The same documents with tokens that ZERO knows."""
    folded = [TokenizedDocument(d.name, [t % 64 for t in d.input_ids], d.byte_count) for d in documents.documents]
    return DocumentSet(folded, documents.length, len(folded), 0, documents.bos_token_id)


@pytest.mark.parametrize("bos", [0, None])
def test_bits_per_byte_of_uniform_predictions(
    zero_model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, bos: int | None
) -> None:
    """Six bits a token; the bytes are those of the scored text, its first token left out where nothing is before it."""
    text = "a plain text of words, " * 40
    documents = fold(chosen(tokenizer, text, text[5:], length=60, bos=bos, document_tokens=90))
    encoded = [
        tokenizer(t, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"] for t in (text, text[5:])
    ]
    skipped = 0 if bos is not None else 1
    for protocol, stop in (("prefix", 60), ("sliding", 90)):
        last = stop - (bos is not None)
        expected = sum(offsets[last - 1][1] - (offsets[0][1] if skipped else 0) for offsets in encoded)
        request = PerplexityRequest(parse_method("none"), geometry, documents, [60], 7)
        (point,) = measured(zero_model, protocol, request)
        assert point.num_bytes == expected
        assert point.bits_per_byte == pytest.approx(6 * point.num_tokens / expected, rel=UNIFORM)


def test_bytes_do_not_depend_on_the_tokens(
    zero_model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any
) -> None:
    """A tokenizer that splits more finely has a lower perplexity a token, on text of the same bytes."""

    class Letters:
        """One token a character, and where each is."""

        is_fast = True
        bos_token_id = None
        all_special_ids = ()

        def __call__(self, text: str, **options: Any) -> dict[str, Any]:
            return {"input_ids": [ord(c) % 64 for c in text], "offset_mapping": [(i, i + 1) for i in range(len(text))]}

    text = TEXT[:150]
    coarse = tokenizer.encode(text, add_special_tokens=False)
    points = []
    for kind, size in ((tokenizer, len(coarse)), (Letters(), len(text))):
        documents = fold(chosen(kind, text, length=size))
        first = documents.documents[0].byte_count
        assert first is not None and first(0, size) == len(text.encode())
        points.append(prefix_points(zero_model, parse_method("none"), geometry, documents, [size])[0])
    assert points[0].perplexity == pytest.approx(points[1].perplexity or 0, rel=UNIFORM)
    assert points[0].bits_per_byte != pytest.approx(points[1].bits_per_byte or 0, rel=0.01)
    assert points[0].bits_per_byte == pytest.approx(6 * (len(coarse) - 1) / (points[0].num_bytes or 0), rel=UNIFORM)


def test_unknown_bytes_are_not_made_up(zero_model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    documents = DocumentSet([TokenizedDocument("d", list(range(60)))], 60, 1, 60, None)
    (point,) = prefix_points(zero_model, parse_method("none"), geometry, documents, [60])
    assert point.num_bytes is None and point.bits_per_byte is None and point.ci_low is None
