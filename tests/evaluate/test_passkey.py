"""Teacher-forced scores are exactly what greedy decoding would have produced, with a cache and without."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.evaluate import passkey
from ropectl.evaluate.forward import Forward
from ropectl.evaluate.passkey import measure_passkey, measure_trees
from ropectl.evaluate.passkey_lengths import by_length
from ropectl.evaluate.passkey_plan import count_tokens, default_positions, plan_passkey, plan_positions
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import ModelConfig
from ropectl.evaluate.walk import TrialScore
from ropectl.hf.model.patch import apply_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.evaluate.naive import answer, continuation, counted
from tests.tolerances import WALK

BUILTIN = RopeGeometry(32, 10_000.0, 512)
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def trained() -> Setup:
    return Setup.of(ModelConfig())


@pytest.mark.parametrize("spec", ["none", "yarn:factor=2", "dynamic-yarn", "dynamic-ntk"])
def test_equals_greedy_decoding(trained: Setup, spec: str) -> None:
    """As transformers' own generate under the frozen table, with a cache and without."""
    method, model = parse_method(spec), trained.model
    builder = PasskeyPromptBuilder(trained.tokenizer, trained.bos_token_id, seed=5)
    depths, lengths, trials = [0.0, 0.5], [256, 640], 2
    for measured in measure_passkey(model, method, BUILTIN, builder, lengths, depths, trials):
        for depth, cell in zip(depths, measured.depths, strict=True):
            correct = {True: 0, False: 0} if method.depends_on_seq_len else {True: 0}
            for trial in range(trials):
                prompt = builder.build(measured.length, depth, trial)
                start = torch.tensor([prompt.input_ids[: prompt.answer_start]])
                for use_cache in correct:
                    with apply_rope(model, method, geometry=BUILTIN, seq_len=measured.length):
                        text = model.generate(
                            start, attention_mask=torch.ones_like(start), max_new_tokens=cell.answer_tokens,
                            do_sample=False, pad_token_id=0, use_cache=use_cache,
                        )  # fmt: skip
                    correct[use_cache] += text[0].tolist() == prompt.input_ids
            assert set(correct.values()) == {cell.correct}
        assert measured.correct == sum(cell.correct for cell in measured.depths)


@pytest.mark.parametrize("spec", ["yarn:factor=4", "dynamic-ntk", "dynamic-yarn"])
@pytest.mark.parametrize("distractors", [0, 2])
def test_every_trial_is_as_alone(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, spec: str, distractors: int
) -> None:
    """What a walk shares, and a cache, change nothing; distractors share no tail."""
    method, builder = parse_method(spec), PasskeyPromptBuilder(tokenizer, 0, num_distractors=distractors)
    lengths = [256, 512, 700]
    measured = measure_passkey(model, method, geometry, builder, lengths, DEPTHS, 3, generate=True)
    assert [entry.length for entry in measured] == lengths
    for entry in measured:
        assert entry.num_differing == 0
        for cell in entry.depths:
            with apply_rope(model, method, geometry=geometry, seq_len=entry.length):
                alone = [answer(model, builder.build(entry.length, cell.depth, trial).trial) for trial in range(3)]
            assert cell.correct == sum(right for right, _ in alone)
            assert cell.answer_logprob == pytest.approx(sum(logprob for _, logprob in alone) / 3, abs=WALK)


@pytest.mark.parametrize("spec", ["dynamic-ntk", "dynamic-yarn"])
def test_a_length_is_what_it_is_whatever_else_is_measured(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, spec: str
) -> None:
    """Bit-equal, in any order; at the trained length it is the unscaled model."""
    builder, method = PasskeyPromptBuilder(tokenizer, 0), parse_method(spec)
    together = measure_passkey(model, method, geometry, builder, [128, 200, 512], [0.5], 3)
    backwards = measure_passkey(model, method, geometry, builder, [512, 200, 128], [0.5], 3)
    single = [measure_passkey(model, method, geometry, builder, [n], [0.5], 3)[0] for n in (200, 512, 128)]
    assert together == backwards == sorted(single, key=lambda entry: entry.length)
    plain = measure_passkey(model, parse_method("none"), geometry, builder, [128], [0.5], 3)
    assert together[0].answer_logprob == plain[0].answer_logprob


def test_trees_together_or_apart(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """Pieces of a grid that are measured by themselves give the same cells, and cost what they say."""
    builder, lengths = PasskeyPromptBuilder(tokenizer, 0), [128, 256, 512]
    assert Forward.of(model).shares
    for spec in ("pi:factor=4", "dynamic-ntk"):
        method = parse_method(spec)
        trees = plan_passkey(method, builder, lengths, DEPTHS)
        frozen = method.depends_on_seq_len
        assert all({length for length, _ in tree.points} == {tree.seq_len} for tree in trees if frozen)
        assert all(tree.seq_len is None for tree in trees if not frozen)
        apart = []
        for tree in trees:
            with counted(model) as tokens:
                apart += measure_trees(model, method, geometry, builder, [tree], 3)
            assert sum(tokens) == count_tokens(builder, [tree], 3)
        with counted(model) as tokens:
            together = measure_trees(model, method, geometry, builder, trees, 3)
        assert sum(tokens) == count_tokens(builder, trees, 3) < sum(count_tokens(builder, [t], 3) for t in trees)
        for ours, theirs in zip(together, apart, strict=True):
            assert ours.answer_logprob == pytest.approx(theirs.answer_logprob, abs=WALK)
            assert (ours.length, ours.depth, ours.correct) == (theirs.length, theirs.depth, theirs.correct)


def test_position_grid(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """Needles stand at the same tokens at every length that reaches beyond them; the first is behind the task."""
    builder, lengths = PasskeyPromptBuilder(tokenizer, 0), [128, 256, 512]
    positions = default_positions(lengths)
    assert positions == [0, 64, 128, 256]
    trees = plan_positions(parse_method("none"), builder, lengths, positions)
    head = builder.needle_position(128, 0.0)
    assert [tree.position for tree in trees] == [head, 64, 128, 256]
    assert [[length for length, _ in tree.points] for tree in trees] == [lengths, lengths, [256, 512], [512]]
    cells = measure_trees(model, parse_method("none"), geometry, builder, trees, 2)
    assert [(cell.length, cell.needle_position) for entry in by_length(cells) for cell in entry.depths] == [
        (128, head), (128, 64), (256, head), (256, 64), (256, 128), (512, head), (512, 64), (512, 128), (512, 256),
    ]  # fmt: skip
    assert {cell.trials for cell in cells} == {2}


def test_log_probability_is_that_of_the_whole_answer(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any
) -> None:
    builder = PasskeyPromptBuilder(tokenizer, 0)
    (measured,) = measure_passkey(model, parse_method("none"), geometry, builder, [128], [0.5], 3)
    expected = []
    for trial in range(3):
        prompt = builder.build(128, 0.5, trial)
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([prompt.input_ids])).logits[0].double().log_softmax(-1)
        expected.append(sum(logits[i - 1, prompt.input_ids[i]].item() for i in range(prompt.answer_start, 128)))
    assert measured.answer_logprob == pytest.approx(sum(expected) / 3, rel=1e-5)


def test_record_says_what_was_asked(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """Prompt and answer fit the length; interval and trials are there; what lies beyond is marked."""
    builder, method = PasskeyPromptBuilder(tokenizer, 0), parse_method("none")
    (measured,) = measure_passkey(model, method, geometry, builder, [256], [0.0, 1.0], 10)
    assert measured.trials == 20 and 0 <= measured.ci_low <= measured.accuracy <= measured.ci_high <= 1
    for cell in measured.depths:
        assert cell.prompt_tokens + cell.answer_tokens == cell.length == 256
        assert cell.trials == 10 and cell.ci_high > 0
    assert not measured.beyond_capacity and measured.num_differing is None
    both = measure_passkey(model, method, geometry, builder, [128, 256], [0.0, 1.0], 10, capacity=128)
    assert [entry.beyond_capacity for entry in both] == [False, True] and both[1].correct == measured.correct


@pytest.mark.parametrize("options", [{"max_batch_tokens": 128}, {"max_batch_tokens": 700}, {"prefill_chunk": 40}])
def test_batches_do_not_change_the_result(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, options: dict[str, int]
) -> None:
    builder, method = PasskeyPromptBuilder(tokenizer, 0), parse_method("pi:factor=2")
    plain = measure_passkey(model, method, geometry, builder, [128, 200], [0.5], 7)
    other = measure_passkey(model, method, geometry, builder, [128, 200], [0.5], 7, **options)
    for ours, theirs in zip(other, plain, strict=True):
        assert ours.correct == theirs.correct and ours.answer_logprob == pytest.approx(theirs.answer_logprob, rel=1e-5)


def test_no_trial_counts_twice(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """In a short prompt depths 0 and 25 %, 75 and 100 % are one position each: the same prompts."""
    builder = PasskeyPromptBuilder(tokenizer, 0)
    (measured,) = measure_passkey(model, parse_method("none"), geometry, builder, [128], list(DEPTHS), 5)
    assert [cell.depth for cell in measured.depths] == [0.0, 0.5, 0.75] and measured.trials == 15
    assert len({cell.needle_position for cell in measured.depths}) == 3


def test_repeats_are_bit_equal_whatever_ran_between(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any
) -> None:
    builder, method = PasskeyPromptBuilder(tokenizer, 0), parse_method("dynamic-ntk")
    first = measure_passkey(model, method, geometry, builder, [200], [0.5], 3)
    measure_passkey(model, parse_method("yarn:factor=8"), geometry, builder, [400], [0.0], 3)
    assert measure_passkey(model, method, geometry, builder, [200], [0.5], 3) == first


def test_answers_without_tokens_of_their_own_are_read(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for the text is kept free; a number that begins with the key is another number."""
    builder = PasskeyPromptBuilder(tokenizer, 0, generated=True)
    (real,) = measure_passkey(model, parse_method("none"), geometry, builder, [160], [0.5], 2)
    assert real.answer_logprob is None and real.num_differing is None and real.trials == 2
    assert real.depths[0].prompt_tokens == 152 and real.depths[0].answer_tokens == 8
    texts = [" {}.", "\n{}", " {}7", " {} ", "key {}", ""]

    def written(_: Any, trials: Any, **__: Any) -> list[TrialScore]:
        assert all(not trial.answer_ids and trial.seq_len == 160 for trial in trials)
        said = [text.format(trial.references[0]) for text, trial in zip(texts, trials, strict=True)]
        return [TrialScore(False, None, tuple(tokenizer.encode(text, add_special_tokens=False))) for text in said]

    monkeypatch.setattr(passkey, "walk", written)
    (measured,) = measure_passkey(model, parse_method("none"), geometry, builder, [160], [0.5], len(texts))
    assert measured.correct == 3


def test_generation_that_says_otherwise_is_counted(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = PasskeyPromptBuilder(tokenizer, 0)

    def broken(_: Any, trials: Any, **__: Any) -> list[TrialScore]:
        texts = [tuple(trial.answer_ids) if number else (5, 6) for number, trial in enumerate(trials)]
        return [TrialScore(True, -1.0, text) for text in texts]

    monkeypatch.setattr(passkey, "walk", broken)
    (measured,) = measure_passkey(model, parse_method("none"), geometry, builder, [160], [0.5], 4, generate=True)
    assert measured.correct == 4 and measured.num_differing == 1 and measured.depths[0].num_differing == 1


def test_the_walk_generates_what_the_model_would(trained: Setup) -> None:
    """Decoded behind a branched cache, as without any cache."""
    builder = PasskeyPromptBuilder(trained.tokenizer, trained.bos_token_id, generated=True)
    prompts = [builder.build(300, 0.5, trial) for trial in range(3)]
    scores = passkey.walk(trained.model, [prompt.trial for prompt in prompts])
    for prompt, score in zip(prompts, scores, strict=True):
        assert score.generated == continuation(trained.model, prompt.input_ids, 8)
        assert builder.text(score.generated).strip().startswith(prompt.key)
