"""Token losses against the plain computation, and what must never be allocated or passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaForCausalLM

from ropectl.errors import MeasurementError
from ropectl.evaluate import forward as forward_module
from ropectl.evaluate.forward import Forward
from ropectl.hf.model.cache import cache_name
from scripts.tiny_models import tiny_model
from tests.conftest import make_model
from tests.tolerances import CHUNKED


def plain_nll(model: Any, ids: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        logits = model(input_ids=ids).logits[:, :-1].float()
    return -logits.log_softmax(-1).gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


@pytest.fixture
def ids() -> torch.Tensor:
    return torch.randint(0, 1024, (3, 200), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("chunk", [None, 2, 7, 64, 199, 200, 500])
def test_token_nll_is_the_plain_one(model: LlamaForCausalLM, ids: torch.Tensor, chunk: int | None) -> None:
    actual = Forward.of(model, chunk).token_nll(ids)
    assert actual.shape == (3, 199)
    torch.testing.assert_close(actual, plain_nll(model, ids), atol=CHUNKED, rtol=0)


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_loss_chunks_do_not_change_the_loss(
    model: LlamaForCausalLM, ids: torch.Tensor, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = plain_nll(model, ids)
    monkeypatch.setattr(forward_module, "LOGITS_PER_CHUNK", 1024 * 3 * rows)
    torch.testing.assert_close(Forward.of(model).token_nll(ids), expected, atol=CHUNKED, rtol=0)


@pytest.mark.parametrize("chunk", [None, 64, 195])
@pytest.mark.parametrize("last", [1, 6, 199])
def test_last_tokens(model: LlamaForCausalLM, ids: torch.Tensor, chunk: int | None, last: int) -> None:
    actual = Forward.of(model, chunk).token_nll(ids, last)
    torch.testing.assert_close(actual, plain_nll(model, ids)[:, -last:], atol=CHUNKED, rtol=0)


def test_models_that_cap_their_logits_are_scored_by_their_own(ids: torch.Tensor) -> None:
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=1024, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, head_dim=16, final_logit_softcapping=0.5, max_position_embeddings=512,
    )  # fmt: skip
    model = Gemma2ForCausalLM(config).eval()
    with torch.no_grad():
        model.lm_head.weight.mul_(30)
    forward = Forward.of(model)
    assert not forward.reads_hidden
    torch.testing.assert_close(forward.token_nll(ids), plain_nll(model, ids), atol=CHUNKED, rtol=0)
    widest = []
    model.lm_head.register_forward_hook(lambda _m, _a, out: widest.append(out.shape[1]))
    small = Forward(model, prefill_chunk=50, reads_hidden=False)
    torch.testing.assert_close(small.token_nll(ids, 6), plain_nll(model, ids)[:, -6:], atol=CHUNKED, rtol=0)
    assert widest[:4] == [1, 1, 1, 6], "chunks before the wanted tokens compute no logits but one"


def test_a_large_vocabulary_loses_no_digits() -> None:
    """Summing 49k exponentials carelessly in float32 is off by 1e-4 nats a token, all in one direction."""
    model = make_model(vocab_size=49_152, num_hidden_layers=1)
    with torch.no_grad():
        model.lm_head.weight.mul_(0.1)
    ids = torch.randint(0, 49_152, (2, 40), generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        logits = model(input_ids=ids).logits[:, :-1].double()
    expected = -logits.log_softmax(-1).gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(Forward.of(model).token_nll(ids).double(), expected, atol=5e-6, rtol=0)


@pytest.fixture
def largest_logits() -> Iterator[dict[str, int]]:
    seen = {"numel": 0}
    original = F.linear

    def watched(*args: Any, **kwargs: Any) -> torch.Tensor:
        result = original(*args, **kwargs)
        if result.shape[-1] == 131_072:
            seen["numel"] = max(seen["numel"], result.numel())
        return result

    torch.nn.functional.linear = watched
    yield seen
    torch.nn.functional.linear = original


@pytest.mark.process
@pytest.mark.parametrize("num_last", [None, 1000])
def test_full_logits_never_exist(num_last: int | None, largest_logits: dict[str, int]) -> None:
    """A 128k vocabulary over 2048 tokens would be a gigabyte of logits; a chunk is 64 MiB."""
    model = make_model(vocab_size=131_072, tie_word_embeddings=True, num_hidden_layers=1)
    ids = torch.randint(0, 131_072, (1, 2048), generator=torch.Generator().manual_seed(0))
    forward = Forward.of(model)
    largest_logits["numel"] = 0
    forward.token_nll(ids, num_last)
    assert 0 < largest_logits["numel"] <= forward_module.LOGITS_PER_CHUNK


def test_no_mask_and_no_cache(model: LlamaForCausalLM, ids: torch.Tensor) -> None:
    """Causality needs no mask, scoring needs no cache; the config is left alone."""
    seen: list[dict[str, Any]] = []
    for layer in model.model.layers:
        layer.register_forward_pre_hook(lambda _m, _a, kwargs: seen.append(kwargs), with_kwargs=True)
    assert model.config.use_cache
    forward = Forward.of(model)
    forward.token_nll(ids)
    forward.token_nll(ids, 6)
    cache = cache_name(model)
    assert seen and all(kwargs["attention_mask"] is None and kwargs[cache] is None for kwargs in seen)
    assert model.config.use_cache


@pytest.mark.parametrize("family", ["bamba", "minimax"])
def test_a_model_that_begins_anew_with_every_piece_is_not_run_in_pieces(family: str, ids: torch.Tensor) -> None:
    """Whole windows are right; chunks, whose numbers would be others, are refused."""
    model = tiny_model(family)
    short = ids[:1, :40].remainder(model.config.vocab_size)
    torch.testing.assert_close(Forward.of(model).token_nll(short), plain_nll(model, short), atol=1e-3, rtol=0)
    with pytest.raises(MeasurementError, match="cannot be run in pieces"):
        Forward.of(model, 7).token_nll(short)


def test_what_is_tried_out_is_tried_once_for_each_model(model: LlamaForCausalLM, ids: torch.Tensor) -> None:
    passes: list[Any] = []
    Forward.of(model, 64).token_nll(ids)
    model.model.register_forward_hook(lambda *_: passes.append(1))
    Forward.of(model, 64).token_nll(ids)
    assert len(passes) == 4, "199 tokens in chunks of 64, and nothing else"


def test_a_decoder_that_is_a_head_is_not_asked_for_hidden_states(ids: torch.Tensor) -> None:
    model = tiny_model("modernbert-decoder")
    short = ids[:1, :40].remainder(model.config.vocab_size)
    torch.testing.assert_close(Forward.of(model).token_nll(short), plain_nll(model, short), atol=1e-3, rtol=0)
