"""Teacher-forced scores are exactly what greedy decoding would have produced."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.evaluate.config import ModelConfig
from ropectl.evaluate.passkey import measure_passkey
from ropectl.evaluate.setup import Setup
from ropectl.hf.patch import apply_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method

BUILTIN = RopeGeometry(32, 10_000.0, 512)


@pytest.fixture(scope="module")
def trained() -> Setup:
    return Setup.of(ModelConfig())


@pytest.mark.parametrize("spec", ["none", "yarn:factor=2", "dynamic-yarn"])
@pytest.mark.parametrize("length", [256, 768])
def test_equals_greedy_decoding(trained: Setup, spec: str, length: int) -> None:
    method, model = parse_method(spec), trained.model
    builder = PasskeyPromptBuilder(trained.tokenizer, trained.bos_token_id, seed=5)
    depths = [0.0, 0.5]
    measured = measure_passkey(model, method, BUILTIN, builder, length, depths, 3)
    for depth, cell in zip(depths, measured.depths, strict=True):
        correct = 0
        for trial in range(3):
            prompt = builder.build(length, depth, trial)
            with apply_rope(model, method, geometry=BUILTIN, seq_len=length):
                start = torch.tensor([prompt.input_ids[: prompt.answer_start]])
                answer = model.generate(
                    start,
                    attention_mask=torch.ones_like(start),
                    max_new_tokens=cell.answer_tokens,
                    do_sample=False,
                    pad_token_id=0,
                )
            correct += answer[0].tolist() == prompt.input_ids
        assert cell.correct == correct
    assert measured.correct == sum(cell.correct for cell in measured.depths)


def test_log_probability_is_that_of_the_whole_answer(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any
) -> None:
    builder = PasskeyPromptBuilder(tokenizer, 0)
    measured = measure_passkey(model, parse_method("none"), geometry, builder, 128, [0.5], 3)
    expected = []
    for trial in range(3):
        prompt = builder.build(128, 0.5, trial)
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([prompt.input_ids])).logits[0].double().log_softmax(-1)
        expected.append(sum(logits[i - 1, prompt.input_ids[i]].item() for i in range(prompt.answer_start, 128)))
    assert measured.answer_logprob == pytest.approx(sum(expected) / 3, rel=1e-5)


def test_record_says_what_was_asked(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """D12, D13, D19: prompt and answer fit the length; interval and trials are there."""
    measured = measure_passkey(
        model, parse_method("none"), geometry, PasskeyPromptBuilder(tokenizer, 0), 256, [0.0, 1.0], 10
    )
    assert measured.trials == 20 and 0 <= measured.ci_low <= measured.accuracy <= measured.ci_high <= 1
    for cell in measured.depths:
        assert cell.prompt_tokens + cell.answer_tokens == cell.length == 256
        assert cell.trials == 10 and cell.ci_high > 0
    assert not measured.beyond_capacity
    again = measure_passkey(
        model, parse_method("none"), geometry, PasskeyPromptBuilder(tokenizer, 0), 256, [0.0, 1.0], 10, capacity=128
    )
    assert again.beyond_capacity and again.correct == measured.correct


@pytest.mark.parametrize("options", [{"max_batch_tokens": 128}, {"max_batch_tokens": 700}, {"prefill_chunk": 40}])
def test_batches_do_not_change_the_result(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, options: dict[str, int]
) -> None:
    builder, method = PasskeyPromptBuilder(tokenizer, 0), parse_method("pi:factor=2")
    plain = measure_passkey(model, method, geometry, builder, 128, [0.5], 7)
    other = measure_passkey(model, method, geometry, builder, 128, [0.5], 7, **options)
    assert other.correct == plain.correct and other.answer_logprob == pytest.approx(plain.answer_logprob, rel=1e-5)


def test_no_trial_counts_twice(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """In a short prompt depths 0 and 25 %, 75 and 100 % are one position each: the same prompts."""
    builder = PasskeyPromptBuilder(tokenizer, 0)
    measured = measure_passkey(model, parse_method("none"), geometry, builder, 128, [0.0, 0.25, 0.5, 0.75, 1.0], 5)
    assert [cell.depth for cell in measured.depths] == [0.0, 0.5, 0.75] and measured.trials == 15
    assert len({cell.needle_position for cell in measured.depths}) == 3


def test_repeats_are_bit_equal_whatever_ran_between(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any
) -> None:
    builder, method = PasskeyPromptBuilder(tokenizer, 0), parse_method("dynamic-ntk")
    first = measure_passkey(model, method, geometry, builder, 200, [0.5], 3)
    measure_passkey(model, parse_method("yarn:factor=8"), geometry, builder, 400, [0.0], 3)
    assert measure_passkey(model, method, geometry, builder, 200, [0.5], 3) == first
