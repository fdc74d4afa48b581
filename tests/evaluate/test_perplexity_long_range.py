"""Key tokens and gain from context against loops over targets."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.data.tokens import DocumentSet, TokenizedDocument
from ropectl.errors import ConfigError, MeasurementError
from ropectl.evaluate.judging.statistics import mean_interval
from ropectl.evaluate.perplexity.protocols.key_tokens import KeyTokens
from ropectl.evaluate.perplexity.runner import losses_of, measure_perplexity
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest
from ropectl.hf.model.patch import apply_rope
from ropectl.records import PerplexityPoint
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.conftest import TRAINED, make_model
from tests.evaluate.measured import tail_points, tokens_of
from tests.tolerances import EXACT, ONE_PASS

pytestmark = pytest.mark.usefixtures("one_thread")

KEY_TOKENS = KeyTokens()


def cut(documents: DocumentSet, size: int, bos: int | None) -> DocumentSet:
    rows = [TokenizedDocument(d.name, d.input_ids[: size + 1][bos is None :][:size]) for d in documents.documents[:2]]
    return DocumentSet(rows, size, 2, size, bos)


def logprobs(model: LlamaForCausalLM, row: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=torch.tensor([row])).logits[0].double().log_softmax(-1)


def measured(
    model: LlamaForCausalLM, request: PerplexityRequest, options: PassOptions | None = None
) -> list[PerplexityPoint]:
    return measure_perplexity(model, KEY_TOKENS, request, options)


@pytest.mark.process
@pytest.mark.parametrize("bos", [0, None])
@pytest.mark.parametrize("spec", ["none", "dynamic-ntk"])
def test_key_tokens_equal_a_loop_over_targets(
    geometry: RopeGeometry, documents: DocumentSet, spec: str, bos: int | None
) -> None:
    """arXiv 2410.23771, equations 2 to 5: log-probability gain above 2 and log-probability above -2, blocks of K / 4.

    A small vocabulary and sharp predictions, so that a random model is sometimes right, and changes its mind.
    """
    model = make_model(vocab_size=24, tie_word_embeddings=False)
    model.lm_head.weight.data.mul_(20)
    length, context, block = 101, 32, 8
    few = cut(documents, length, bos)
    few = DocumentSet(
        [TokenizedDocument(d.name, [t % 24 for t in d.input_ids]) for d in few.documents], length, 2, 0, bos
    )
    method = parse_method(spec)
    total, keys, candidates = 0.0, [], 0
    for document in few.documents:
        ids, count = document.input_ids, 0
        with apply_rope(model, method, geometry=geometry, seq_len=length):
            long = logprobs(model, ids)
        for target in range(context, length):
            start = target - context - (target - context) % block
            with apply_rope(model, method, geometry=geometry, seq_len=context + block):
                row = (
                    ids[:target]
                    if start == 0
                    else ([bos, *ids[start + 1 : target]] if bos is not None else ids[start:target])
                )
                short = logprobs(model, row)[-1, ids[target]].item()
            gained, reached = long[target - 1, ids[target]].item() - short, long[target - 1, ids[target]].item()
            if gained > 2 and reached > -2:
                total, count = total - reached, count + 1
            candidates += 1
        keys.append(count)
    assert sum(keys) >= 5, "or nothing is tested"
    request = PerplexityRequest(method, geometry, few, [length], short_context=context)
    for options in (PassOptions(), PassOptions(batch_size=3, prefill_chunk=17)):
        (point,) = measured(model, request, options)
        assert (point.num_tokens, point.document_num_tokens) == (sum(keys), keys)
        assert (point.num_candidates, point.short_context) == (candidates, context)
        assert point.nll_sum == pytest.approx(total, rel=ONE_PASS)
        assert point.perplexity == pytest.approx(math.exp(total / sum(keys)), rel=ONE_PASS)


def test_each_candidate_is_scored_once_in_windows_that_begin_with_bos(
    geometry: RopeGeometry, documents: DocumentSet
) -> None:
    for bos in (0, None):
        few = cut(documents, 203, bos)
        request = PerplexityRequest(parse_method("none"), geometry, few, [203])
        long, short = KEY_TOKENS.passes(request)
        for one, size, first in ((long, 203, 1), (short, 101 + 25, 101)):
            targets = [(w.document, i) for w in one.windows() for i in range(w.stop - w.num_scored, w.stop)]
            assert sorted(targets) == [(d, i) for d in (0, 1) for i in range(first, 203)] and one.seq_len == size
            for window in one.windows():
                row = window.input_ids(few)
                assert len(row) <= size and row.count(0) == (bos is not None) and (bos is None or row[0] == 0)
                assert len(row) - window.num_scored == first
        assert tokens_of([long, short], few) == 2 * (203 + 5 * 101 + 102)


@pytest.mark.process
def test_short_context_is_the_trained_length_or_half(geometry: RopeGeometry, documents: DocumentSet) -> None:
    request = PerplexityRequest(parse_method("none"), geometry, documents, [64, 512, 600])
    assert [one.lengths for one in KEY_TOKENS.passes(request)] == [(64, 512), (64,), (512,)]
    more = PerplexityRequest(parse_method("none"), geometry, documents, [256, 400, 512])
    assert [one.lengths for one in KEY_TOKENS.passes(more)] == [(256, 400, 512)] * 2, "nothing is computed twice"
    together, alone = measured(make_model(), more), measured(make_model(), replace(more, lengths=[400]))[0]
    assert together[1].num_tokens == alone.num_tokens
    assert together[1].candidates_perplexity == pytest.approx(alone.candidates_perplexity, rel=ONE_PASS)
    points = measured(make_model(), request)
    assert [p.short_context for p in points] == [32, TRAINED, None]
    assert [p.num_candidates for p in points] == [5 * 32, 5 * (512 - TRAINED), None]
    assert points[2] == PerplexityPoint(600)


def test_another_model_can_choose(geometry: RopeGeometry, documents: DocumentSet) -> None:
    """Each method is then asked about the same tokens."""
    torch.manual_seed(3)
    chooser, model = make_model(), make_model(num_hidden_layers=1)
    few = cut(documents, 120, 0)
    request = PerplexityRequest(parse_method("none"), geometry, few, [120], short_context=40)
    mask = torch.zeros(2, 80, dtype=torch.bool)
    mask[0, 3] = mask[1, 60] = mask[1, 79] = True
    given = PerplexityRequest(parse_method("pi:factor=2"), geometry, few, [120], short_context=40, keys={120: mask})
    assert len(KEY_TOKENS.passes(given)) == 1 and len(KEY_TOKENS.passes(request)) == 2
    (point,) = measured(model, given)
    with apply_rope(model, parse_method("pi:factor=2"), geometry=geometry):
        logs = [logprobs(model, document.input_ids) for document in few.documents]
    ids = [document.input_ids for document in few.documents]
    expected = -sum(logs[d][t - 1, ids[d][t]].item() for d, t in ((0, 43), (1, 100), (1, 119)))
    assert point.nll_sum == pytest.approx(expected, rel=ONE_PASS) and point.document_num_tokens == [1, 2]
    chosen = KEY_TOKENS.choose(request, losses_of(chooser, request, PassOptions()))
    assert chosen[120].shape == (2, 80) and chosen[120].dtype == torch.bool


def test_no_key_token_has_no_perplexity(zero_model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    """Where every prediction is uniform, no context helps: nothing is called zero or one."""
    few = DocumentSet([TokenizedDocument(name, [i % 64 for i in range(80)]) for name in "ab"], 80, 2, 80, None)
    (point,) = measured(zero_model, PerplexityRequest(parse_method("none"), geometry, few, [80]))
    assert (point.perplexity, point.num_tokens, point.num_candidates) == (None, 0, 80)
    assert point.candidates_perplexity == pytest.approx(64, rel=1e-6) and point.ci_low is None


def test_a_short_context_without_candidates_is_refused(geometry: RopeGeometry, documents: DocumentSet) -> None:
    request = PerplexityRequest(parse_method("none"), geometry, documents, [64, 128], short_context=64)
    with pytest.raises(ConfigError, match="short-context = 64 is not possible at length 64"):
        KEY_TOKENS.completed(request)


def test_numbers_that_are_none_are_an_error(geometry: RopeGeometry, documents: DocumentSet) -> None:
    model = make_model()
    model.lm_head.weight.data.fill_(float("nan"))
    with pytest.raises(MeasurementError, match="mean loss at 64 tokens is nan"):
        measured(model, PerplexityRequest(parse_method("none"), geometry, documents, [64]))


def test_gain_is_the_difference_to_the_trained_length(
    model: LlamaForCausalLM, geometry: RopeGeometry, documents: DocumentSet
) -> None:
    method = parse_method("yarn:factor=4")
    points = tail_points(model, method, geometry, documents, [64, TRAINED, 512, 1000], 32)
    reference = points[1]
    for point in points[:3]:
        differences = [
            (theirs - ours) / 32
            for ours, theirs in zip(point.document_nll_sums, reference.document_nll_sums, strict=True)
        ]
        assert point.gain_over_trained == pytest.approx(sum(differences) / 5, rel=1e-9, abs=1e-12)
        assert (point.gain_ci_low, point.gain_ci_high) == pytest.approx(mean_interval(differences))
        assert (
            point.gain_ci_low <= point.gain_over_trained + 1e-12
            and point.gain_over_trained - 1e-12 <= point.gain_ci_high
        )
    assert reference.gain_over_trained == 0 and points[2].gain_over_trained != 0
    assert points[3].gain_over_trained is None
    without = tail_points(model, method, geometry, documents, [64, 512], 32)
    assert [p.gain_over_trained for p in without] == [None, None]
    assert [p.nll_sum for p in without] == pytest.approx([points[0].nll_sum, points[2].nll_sum], rel=EXACT)
