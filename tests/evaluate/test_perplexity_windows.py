"""Protocols of moving windows against one forward pass per target, and against closed forms."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.data.tokens import DocumentSet, TokenizedDocument
from ropectl.errors import ConfigError
from ropectl.evaluate.perplexity.find_protocol import all_protocols, find_protocol
from ropectl.evaluate.perplexity.protocol import PerplexityProtocol
from ropectl.evaluate.perplexity.runner import _batches, measure_perplexity
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest, Window
from ropectl.hf.model.patch import apply_rope
from ropectl.records import PerplexityPoint
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.conftest import VOCABULARY
from tests.evaluate.measured import measured, tokens_of
from tests.rope.test_contract import example
from tests.tolerances import EXACT, ONE_PASS, UNIFORM

pytestmark = pytest.mark.usefixtures("one_thread")

BOS = 0
MOVING = ("sliding", "overlapping")
#: Protocols that score the same targets whatever the model computes.
BY_LENGTH = (*MOVING, "prefix", "tail")


def texts(*sizes: int, bos: int | None = BOS, vocabulary: int = VOCABULARY, length: int | None = None) -> DocumentSet:
    """Random documents of as many tokens, BOS included."""
    generator = torch.Generator().manual_seed(4)
    rows = [torch.randint(1, vocabulary, (size,), generator=generator).tolist() for size in sizes]
    if bos is not None:
        rows = [[bos, *row[1:]] for row in rows]
    shortest = length or min(sizes)
    return DocumentSet([TokenizedDocument(f"d{i}", row) for i, row in enumerate(rows)], shortest, len(rows), 0, bos)


def target_nll(model: LlamaForCausalLM, context: list[int], target: int) -> float:
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([context])).logits[0, -1].double()
    return -logits.log_softmax(-1)[target].item()


def naive_sliding(model: LlamaForCausalLM, documents: DocumentSet, length: int, stride: int) -> tuple[list[float], int]:
    """Sum of losses by document and number of targets: each target's context is found by arithmetic alone."""
    sums, count = [], 0
    for document in documents.documents:
        head = [] if documents.bos_token_id is None else [documents.bos_token_id]
        text = document.input_ids[len(head) :]
        room = length - len(head)
        total = 0.0
        for target in range(1 - len(head), len(text)):
            window = max(0, math.ceil((target - room + 1) / stride))
            total += target_nll(model, head + text[window * stride : target], text[target])
            count += 1
        sums.append(total)
    return sums, count


@pytest.mark.process
@pytest.mark.parametrize(("name", "bos"), [("none", None), ("yarn", BOS), ("dynamic-ntk", BOS), ("dynamic-ntk", None)])
def test_sliding_equals_a_naive_pass_per_target(
    model: LlamaForCausalLM, geometry: RopeGeometry, name: str, bos: int | None
) -> None:
    """Documents of uneven length, a short last window, a stride that does not divide anything."""
    documents = texts(173, 151, bos=bos, length=150)
    method = example(name, 4.0, geometry)
    lengths, stride = [33, 150], 21
    points = measured(model, "sliding", PerplexityRequest(method, geometry, documents, lengths, stride))
    for length, point in zip(lengths, points, strict=True):
        with apply_rope(model, method, geometry=geometry, seq_len=length):
            sums, count = naive_sliding(model, documents, length, stride)
        assert point.document_nll_sums == pytest.approx(sums, rel=ONE_PASS)
        assert point.perplexity == pytest.approx(math.exp(sum(sums) / count), rel=ONE_PASS)
        assert point.num_tokens == count == 173 + 151 - 2
        assert point.document_num_tokens == [172, 150]


@pytest.mark.parametrize("bos", [BOS, None])
@pytest.mark.parametrize("stride", [3, 5, 9])
@pytest.mark.parametrize("size", [10, 20, 21, 34])
def test_every_target_is_scored_once_with_some_context(
    geometry: RopeGeometry, size: int, stride: int, bos: int | None
) -> None:
    """20 tokens in windows of 10; BOS stands first and once, and no window is longer than 10 tokens."""
    documents = texts(size, bos=bos)
    ids = documents.documents[0].input_ids
    request = PerplexityRequest(parse_method("none"), geometry, documents, [10], stride)
    (one,) = all_protocols()["sliding"].passes(request)
    seen: Counter[int] = Counter()
    for window in one.windows():
        tokens = window.input_ids(documents)
        assert len(tokens) == window.num_tokens(documents) <= 10 and 0 < window.num_scored < len(tokens)
        assert tokens[-window.num_scored :] == ids[window.stop - window.num_scored : window.stop]
        if bos is not None:
            assert tokens[0] == bos and tokens.count(bos) == 1
            assert tokens[1:] == ids[max(1, window.start) : window.stop]
        seen.update(range(window.stop - window.num_scored, window.stop))
    assert seen == dict.fromkeys(range(1, size), 1)
    assert tokens_of([one], documents) == sum(len(window.input_ids(documents)) for window in one.windows())


@pytest.mark.parametrize("protocol", MOVING)
@pytest.mark.parametrize("stride", [10, 11, 256])
def test_a_stride_that_leaves_tokens_out_is_refused(geometry: RopeGeometry, protocol: str, stride: int) -> None:
    """With a stride as long as the window, a token would have nothing before it."""
    request = PerplexityRequest(parse_method("none"), geometry, texts(40), [10, 20], stride)
    with pytest.raises(ConfigError, match=f"stride = {stride} is not possible at length 10.*\n.*--stride 9"):
        all_protocols()[protocol].completed(request)
    all_protocols()[protocol].completed(PerplexityRequest(parse_method("none"), geometry, texts(40), [10, 20], 9))


@pytest.mark.process
@pytest.mark.parametrize("bos", [BOS, None])
def test_overlapping_scores_all_of_every_whole_window(
    model: LlamaForCausalLM, geometry: RopeGeometry, bos: int | None
) -> None:
    documents = texts(90, 74, bos=bos)  # the last window of the second just fits
    length, stride, total, count = 40, 17, 0.0, 0
    for document in documents.documents:
        head = [] if bos is None else [bos]
        text = document.input_ids[len(head) :]
        for start in range(0, len(text) - (length - len(head)) + 1, stride):
            row = head + text[start : start + length - len(head)]
            for position in range(1, length):
                total += target_nll(model, row[:position], row[position])
                count += 1
    (point,) = measured(
        model, "overlapping", PerplexityRequest(parse_method("none"), geometry, documents, [length], stride)
    )
    assert (point.num_tokens, point.num_windows) == (count, count // (length - 1)) and point.num_windows == 6
    assert point.nll_sum == pytest.approx(total, rel=ONE_PASS)


@pytest.mark.parametrize("protocol", BY_LENGTH)
@pytest.mark.parametrize(
    ("length", "stride", "chunk", "batch"), [(2, 1, None, 3), (16, 15, 7, 1), (64, 20, 7, 3), (64, 20, None, 1)]
)
def test_uniform_predictions_have_the_perplexity_of_the_vocabulary(
    zero_model: LlamaForCausalLM,
    geometry: RopeGeometry,
    protocol: str,
    length: int,
    stride: int,
    chunk: int | None,
    batch: int,
) -> None:
    """Whatever the window, stride, chunk and batch."""
    documents = texts(64, 77, 100, vocabulary=64)
    request = PerplexityRequest(parse_method("none"), geometry, documents, [length], stride)
    (point,) = measured(zero_model, protocol, request, PassOptions(prefill_chunk=chunk, batch_size=batch))
    assert point.perplexity == pytest.approx(64.0, rel=UNIFORM)
    assert point.window_mean_perplexity == pytest.approx(64.0, rel=UNIFORM)
    assert (point.ci_low, point.ci_high) == pytest.approx((64.0, 64.0), rel=UNIFORM)
    if protocol == "sliding":
        assert point.num_tokens == 64 + 77 + 100 - 3


def test_a_window_as_long_as_the_document_is_one_pass(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    """Sliding over truncated documents has no effect."""
    documents = texts(100, 100)
    request = PerplexityRequest(parse_method("none"), geometry, documents, [100], 9)
    sliding, prefix = (measured(model, protocol, request)[0] for protocol in ("sliding", "prefix"))
    assert sliding.document_nll_sums == pytest.approx(prefix.document_nll_sums, rel=EXACT)


@pytest.mark.process
@pytest.mark.parametrize("protocol", BY_LENGTH)
@pytest.mark.parametrize("options", [PassOptions(batch_size=4), PassOptions(prefill_chunk=11, batch_size=2)])
def test_batches_and_chunks_do_not_change_the_result(
    model: LlamaForCausalLM, geometry: RopeGeometry, protocol: str, options: PassOptions
) -> None:
    request = PerplexityRequest(parse_method("pi:factor=2"), geometry, texts(203, 160, 151, length=150), [50, 150], 21)
    plain, other = measured(model, protocol, request), measured(model, protocol, request, options)
    assert [p.nll_sum for p in other] == pytest.approx([p.nll_sum for p in plain], rel=ONE_PASS)
    assert [p.document_num_tokens for p in other] == [p.document_num_tokens for p in plain]
    assert [p.num_windows for p in other] == [p.num_windows for p in plain]


def test_all_lengths_of_sliding_score_the_same_tokens(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    documents = texts(150, 99, length=80)
    request = PerplexityRequest(parse_method("none"), geometry, documents, [20, 40, 80], 10)
    targets = []
    for one in all_protocols()["sliding"].passes(request):
        scored = [(w.document, i) for w in one.windows() for i in range(w.stop - w.num_scored, w.stop)]
        targets.append(sorted(scored))
    assert targets[0] == targets[1] == targets[2] and len(targets[0]) == 247
    assert {p.num_tokens for p in measured(model, "sliding", request)} == {247}
    assert {name for name, kind in all_protocols().items() if kind.same_targets} == {"sliding", "tail"}


def test_lengths_past_the_target_are_marked_and_missing_ones_are_not_there(
    model: LlamaForCausalLM, geometry: RopeGeometry
) -> None:
    request = PerplexityRequest(
        parse_method("yarn:factor=2"), geometry, texts(300, 300), [64, 256, 300, 1000], 32, capacity=256
    )
    for protocol in MOVING:
        points = measured(model, protocol, request)
        assert [point.beyond_capacity for point in points] == [False, False, True, True]
        assert points[3] == PerplexityPoint(1000, beyond_capacity=True) and points[2].perplexity is not None


@pytest.mark.process
def test_sums_of_parts_are_those_of_the_whole(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    """Documents can be shared out, since sums and counts are kept and never averages."""
    whole = texts(203, 160, 151, 170, 180, length=150)
    for protocol in all_protocols():
        parts = []
        for documents in (whole.documents[:2], whole.documents[2:], whole.documents):
            few = DocumentSet(documents, 150, len(documents), 0, BOS)
            request = PerplexityRequest(parse_method("none"), geometry, few, [40, 100], 21)
            parts.append(measured(model, protocol, request))
        for one, other, both in zip(*parts, strict=True):
            assert one.document_nll_sums + other.document_nll_sums == both.document_nll_sums
            assert one.document_num_tokens + other.document_num_tokens == both.document_num_tokens
            assert one.nll_sum + other.nll_sum == pytest.approx(both.nll_sum, rel=EXACT)
            assert one.num_tokens + other.num_tokens == both.num_tokens


def test_windows_are_made_when_they_are_run(geometry: RopeGeometry) -> None:
    """Memory: of endless windows as many exist as are in a batch of each shape."""
    documents, made = texts(200), 0

    def endless() -> Iterator[Window]:
        nonlocal made
        while True:
            made += 1
            yield Window(0, made, made + 20, 5 + made % 2)  # two shapes in turn

    batches = _batches(endless(), documents, 4)
    assert [len(next(batches)) for _ in range(10)] == [4] * 10 and made == 40
    request = PerplexityRequest(parse_method("none"), geometry, documents, [100], 3)
    assert isinstance(all_protocols()["sliding"].passes(request)[0].windows(), Iterator)


@pytest.mark.process
def test_the_order_of_lengths_changes_nothing(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    method = parse_method("dynamic-yarn")
    documents = texts(203, 160, length=150)
    for protocol in all_protocols():
        runs = [
            measured(model, protocol, PerplexityRequest(method, geometry, documents, lengths, 21, 20))
            for lengths in ([60, 140], [140, 60])
        ]
        assert runs[0] == runs[1][::-1]


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"slide.*prefix, key-tokens, overlapping, sliding, tail"):
        find_protocol("slide")


def test_no_length_has_documents(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    request = PerplexityRequest(parse_method("none"), geometry, texts(30), [64], 8)
    assert measured(model, "sliding", request) == [PerplexityPoint(64)]


class SecondHalf(PerplexityProtocol):
    """Scores the second half of the beginning of each document."""

    name = "second-half"
    summary = "the second half of N tokens"

    def windows(self, request: PerplexityRequest, length: int) -> Iterator[Window]:
        """Yields one window a document."""
        for index in range(len(request.documents.documents)):
            yield Window(index, 0, length, length // 2)


def test_a_protocol_has_to_say_no_more_than_its_windows(model: LlamaForCausalLM, geometry: RopeGeometry) -> None:
    documents = texts(120, 120)
    request = PerplexityRequest(parse_method("none"), geometry, documents, [60, 120])
    short, long = measure_perplexity(model, SecondHalf(), request)
    assert (short.num_tokens, long.num_tokens) == (60, 120)
    (tail,) = measured(model, "tail", PerplexityRequest(parse_method("none"), geometry, documents, [120]))
    assert long.nll_sum == pytest.approx(tail.nll_sum, rel=EXACT)


def test_a_package_can_bring_a_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Entry()] if "protocols" in group else [])
    all_protocols.cache_clear()
    try:
        assert list(all_protocols()) == ["prefix", "key-tokens", "overlapping", "second-half", "sliding", "tail"]
        assert isinstance(find_protocol("second-half"), SecondHalf)
    finally:
        all_protocols.cache_clear()


class Entry:
    """An entry point of an installed package, whose module is this one."""

    def load(self) -> ModuleType:
        """Returns the module."""
        return sys.modules[__name__]
