"""Protocols against naive passes, exact counts, and independence of order."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.data.tokens import DocumentSet
from ropectl.errors import MeasurementError
from ropectl.evaluate.perplexity.find_protocol import find_protocol
from ropectl.evaluate.perplexity.windows import PerplexityRequest
from ropectl.hf.model.patch import apply_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.conftest import make_model
from tests.evaluate.measured import measured, prefix_points, tail_points, tokens_of
from tests.rope.test_contract import NAMES, example
from tests.tolerances import ONE_PASS

LENGTHS = [2, 64, 128, 129, 256, 512]


def naive_perplexity(model: LlamaForCausalLM, rows: list[list[int]]) -> float:
    """One forward pass with full logits per row; token-weighted, loops only."""
    total, count = 0.0, 0
    for row in rows:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([row])).logits[0].double()
        for position in range(1, len(row)):
            total -= logits[position - 1].log_softmax(-1)[row[position]].item()
            count += 1
    return math.exp(total / count)


@pytest.mark.process
@pytest.mark.parametrize("name", NAMES)
def test_prefix_equals_a_naive_pass_per_length(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet, name: str
) -> None:
    method = example(name, 4.0, geometry)
    points = prefix_points(model, method, geometry, documents, LENGTHS)
    for length, point in zip(LENGTHS, points, strict=True):
        with apply_rope(model, method, geometry=geometry, seq_len=length):
            expected = naive_perplexity(model, [document.input_ids[:length] for document in documents.documents])
        assert point.perplexity == pytest.approx(expected, rel=ONE_PASS)
        assert (point.context_length, point.num_documents) == (length, 5)
        assert point.num_tokens == 5 * (length - 1), "every target once, none twice"


@pytest.mark.process
@pytest.mark.parametrize("name", ["none", "yarn", "dynamic-ntk"])
def test_tail_equals_a_naive_pass_per_length(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet, name: str
) -> None:
    method, targets = example(name, 4.0, geometry), 32
    points = tail_points(model, method, geometry, documents, [64, 128, 512], targets)
    for point in points:
        length, total = point.context_length, 0.0
        for document in documents.documents:
            window = [0, *document.input_ids[512 - length + 1 :]] if length < 512 else document.input_ids
            assert len(window) == length
            with apply_rope(model, method, geometry=geometry, seq_len=length), torch.inference_mode():
                logits = model(input_ids=torch.tensor([window])).logits[0].double().log_softmax(-1)
            total -= sum(logits[i - 1, window[i]].item() for i in range(length - targets, length))
        assert point.nll_sum == pytest.approx(total, rel=ONE_PASS)
        assert point.num_tokens == 5 * targets


@pytest.mark.process
@pytest.mark.parametrize("name", NAMES)
def test_order_never_changes_a_number(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet, name: str
) -> None:
    """Bit-equal, whatever ran before."""
    method = example(name, 4.0, geometry)
    lengths = [512, 200, 128]
    forwards = prefix_points(model, method, geometry, documents, lengths)
    for other in NAMES:
        prefix_points(model, example(other, 8.0, geometry), geometry, documents, [300])
    backwards = prefix_points(model, method, geometry, documents, lengths[::-1])
    assert forwards == backwards[::-1]


@pytest.mark.parametrize("name", ["dynamic-ntk", "dynamic-yarn"])
def test_dynamic_equals_the_unscaled_model_up_to_its_length(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet, name: str
) -> None:
    """The trained length itself included."""
    for length in (100, 127, 128):
        unscaled = prefix_points(model, parse_method("none"), geometry, documents, [length])
        dynamic = prefix_points(model, parse_method(name), geometry, documents, [length])
        assert dynamic[0].nll_sum == unscaled[0].nll_sum


def test_passes_are_as_few_as_exactness_allows(geometry: RopeGeometry, documents: DocumentSet) -> None:
    prefix, tail = find_protocol("prefix"), find_protocol("tail")

    def planned(method: str, lengths: list[int]) -> list[tuple[int, tuple[int, ...]]]:
        return [
            (p.seq_len, p.lengths)
            for p in prefix.passes(PerplexityRequest(parse_method(method), geometry, documents, lengths))
        ]

    assert planned("yarn:factor=4", [64, 256, 64, 128]) == [(256, (64, 128, 256))]
    assert planned("dynamic-ntk", [64, 256, 128]) == [(64, (64,)), (128, (128,)), (256, (256,))]
    assert planned("none", [64, 4096]) == [(64, (64,))] and planned("none", [4096]) == []
    for method, tokens in (("none", 5 * 256), ("dynamic-ntk", 5 * (64 + 256))):
        request = PerplexityRequest(parse_method(method), geometry, documents, [64, 256, 4096])
        assert tokens_of(prefix.passes(request), documents) == tokens
    request = PerplexityRequest(parse_method("none"), geometry, documents, [64, 256, 4096])
    assert tokens_of(tail.passes(tail.completed(request)), documents) == 5 * (64 + 256)


def test_lengths_past_the_target_are_measured_and_marked(geometry: RopeGeometry, documents: DocumentSet) -> None:
    """No index error, and never mixed up with what the method was made for."""
    model = make_model()
    for capacity, marks in ((128, [False, False, True, True]), (256, [False, False, False, True]), (None, [False] * 4)):
        method = parse_method("yarn:factor=2")
        request = PerplexityRequest(method, geometry, documents, [64, 128, 256, 512], capacity=capacity)
        points = measured(model, "prefix", request)
        assert [point.beyond_capacity for point in points] == marks
        assert all(point.perplexity is not None for point in points)


def test_a_model_that_computes_no_numbers_is_said(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet
) -> None:
    model.lm_head.weight.data.fill_(float("nan"))
    with pytest.raises(MeasurementError, match="mean loss at 64 tokens is nan"):
        prefix_points(model, parse_method("none"), geometry, documents, [64])
