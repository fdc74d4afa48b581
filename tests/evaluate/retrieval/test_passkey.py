"""Teacher-forced scores are exactly what greedy decoding would have produced, with a cache and without."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from ropectl.evaluate.cost import ForwardCost, ForwardPass
from ropectl.evaluate.forward import Forward
from ropectl.evaluate.retrieval import measure
from ropectl.evaluate.retrieval.answers import TrialScore
from ropectl.evaluate.retrieval.measure import answer_prompts
from ropectl.evaluate.retrieval.passkey_cells import by_length, passkey_cells
from ropectl.evaluate.retrieval.prompts import computed_together, cost_of, count_tokens
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import ModelConfig
from ropectl.hf.model.patch import apply_rope
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.timing.operations import NOTHING
from tests.evaluate.naive import answer, counted
from tests.evaluate.retrieval.measuring import measure_passkey, passkey_prompts
from tests.tolerances import WALK

BUILTIN = RopeGeometry(32, 10_000.0, 512)
TASK = Passkey()
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
FORWARD = ForwardCost(layers=1000, head=100, attention=10)


@pytest.fixture(scope="module")
def trained() -> Setup:
    return Setup.of(ModelConfig())


@pytest.mark.process
@pytest.mark.parametrize("spec", ["none", "yarn:factor=2", "dynamic-yarn", "dynamic-ntk"])
def test_equals_greedy_decoding(trained: Setup, spec: str) -> None:
    """As transformers' own generate under the frozen table, with a cache and without."""
    method, model = parse_method(spec), trained.model
    builder = PromptBuilder(trained.tokenizer, trained.bos_token_id, seed=5)
    depths, lengths, trials = [0.0, 0.5], [256, 640], 1
    for measured in measure_passkey(model, method, BUILTIN, builder, lengths, depths, trials):
        for depth, cell in zip(depths, measured.depths, strict=True):
            correct = {True: 0, False: 0} if method.depends_on_seq_len else {True: 0}
            for trial in range(trials):
                prompt = TASK.build(builder, measured.length, depth, trial)
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


@pytest.mark.process
@pytest.mark.parametrize("spec", ["yarn:factor=4", "dynamic-ntk", "dynamic-yarn"])
@pytest.mark.parametrize("distractors", [0, 2])
def test_every_trial_is_as_alone(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, spec: str, distractors: int
) -> None:
    """What a walk shares, and a cache, change nothing; distractors share no tail."""
    method, builder = parse_method(spec), PromptBuilder(tokenizer, 0)
    lengths = [256, 512, 700]
    measured = measure_passkey(
        model, method, geometry, builder, lengths, DEPTHS, 2, distractors=distractors, generate=True
    )
    task = Passkey(distractors=distractors)
    assert [entry.length for entry in measured] == lengths
    for entry in measured:
        assert entry.num_differing == 0
        for cell in entry.depths:
            with apply_rope(model, method, geometry=geometry, seq_len=entry.length):
                alone = [answer(model, task.build(builder, entry.length, cell.depth, number)) for number in range(2)]
            assert cell.correct == sum(right for right, _ in alone)
            assert cell.answer_logprob == pytest.approx(sum(logprob for _, logprob in alone) / 2, abs=WALK)


@pytest.mark.process
@pytest.mark.parametrize("spec", ["dynamic-ntk", "dynamic-yarn"])
def test_a_length_is_what_it_is_whatever_else_is_measured(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, spec: str
) -> None:
    """Bit-equal, in any order; at the trained length it is the unscaled model."""
    builder, method = PromptBuilder(tokenizer, 0), parse_method(spec)
    together = measure_passkey(model, method, geometry, builder, [128, 200, 512], [0.5], 3)
    backwards = measure_passkey(model, method, geometry, builder, [512, 200, 128], [0.5], 3)
    single = [measure_passkey(model, method, geometry, builder, [n], [0.5], 3)[0] for n in (200, 512, 128)]
    assert together == backwards == sorted(single, key=lambda entry: entry.length)
    plain = measure_passkey(model, parse_method("none"), geometry, builder, [128], [0.5], 3)
    assert together[0].answer_logprob == plain[0].answer_logprob


@pytest.mark.process
def test_together_or_apart(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """Parts of a grid that are measured by themselves give the same cells, and cost what they say."""
    builder, lengths = PromptBuilder(tokenizer, 0), [128, 256, 512]
    Forward.of(model).shares  # noqa: B018
    for spec in ("pi:factor=4", "dynamic-ntk"):
        method, prompts = parse_method(spec), passkey_prompts(builder, lengths, DEPTHS, 3)
        groups = computed_together(method, prompts)
        assert len(groups) == (3 if method.depends_on_seq_len else 1)
        by_position = [
            [p for p in group if p.position == position] for group in groups for position in {p.position for p in group}
        ]
        apart, computed = [], 0
        for part in by_position:
            with counted(model) as tokens:
                apart += passkey_cells(answer_prompts(model, method, geometry, part), builder)
            assert sum(tokens) == count_tokens(method, part)
            computed += sum(tokens)
        done: list[ForwardPass] = []
        with counted(model) as tokens:
            together = passkey_cells(answer_prompts(model, method, geometry, prompts, progress=done.append), builder)
        assert sum(tokens) == count_tokens(method, prompts) < computed
        cost, forward = cost_of(method, prompts, FORWARD), sum(map(FORWARD.of_pass, done), NOTHING)
        assert cost == forward, "planned without the model, pass by pass"
        for ours, theirs in zip(by_length(together), by_length(apart), strict=True):
            assert ours.answer_logprob == pytest.approx(theirs.answer_logprob, abs=WALK)
            assert [(c.length, c.depth, c.correct) for c in ours.depths] == [
                (c.length, c.depth, c.correct) for c in theirs.depths
            ]


@pytest.mark.process
@pytest.mark.parametrize("kind", ["known", "read"])
def test_texts_are_read_as_generate_writes_them(trained: Setup, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Right and wrong ones, with answers that have tokens of their own and without, beyond the length where needed."""
    if kind == "read":
        monkeypatch.setattr(PromptBuilder, "answer", lambda *_: None)
    builder = PromptBuilder(trained.tokenizer, trained.bos_token_id)
    depths, trials, found = [0.0, 0.5, 0.75], 3, set()
    (measured,) = measure_passkey(
        trained.model, parse_method("none"), BUILTIN, builder, [128], depths, trials, generate=True
    )
    for depth, cell in zip(depths, measured.depths, strict=True):
        right = 0
        for number in range(trials):
            trial = TASK.build(builder, 128, depth, number)
            prompt = torch.tensor([trial.input_ids[: trial.answer_start]])
            written = trained.model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=40, do_sample=False, pad_token_id=0
            )[0, prompt.shape[1] :]
            said = trained.tokenizer.decode(written)
            numbers = ["".join(run) for is_digit, run in groupby(said, str.isdigit) if is_digit]
            key = trained.tokenizer.decode(trial.input_ids).split("The pass key is ")[1][:5]
            right += numbers[0] == key
            found.add(numbers[0] == key)
        assert cell.correct == right
    assert found == {True, False}, "or other prompts are needed here"


def test_record_says_what_was_asked(model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any) -> None:
    """Prompt and answer fit the length; interval and trials are there; what lies beyond is marked."""
    builder, method = PromptBuilder(tokenizer, 0), parse_method("none")
    (measured,) = measure_passkey(model, method, geometry, builder, [256], [0.0, 1.0], 10)
    assert measured.trials == 20 and 0 <= measured.ci_low <= measured.accuracy <= measured.ci_high <= 1
    for cell in measured.depths:
        assert cell.prompt_tokens + cell.answer_tokens == cell.length == 256
        assert cell.trials == 10 and cell.ci_high > 0
    assert not measured.beyond_capacity and measured.num_differing is None
    both = measure_passkey(model, method, geometry, builder, [128, 256], [0.0, 1.0], 10, capacity=128)
    assert [entry.beyond_capacity for entry in both] == [False, True] and both[1].correct == measured.correct


@pytest.fixture
def reading(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> PromptBuilder:
    """A builder for which answers have no tokens of their own."""
    monkeypatch.setattr(PromptBuilder, "answer", lambda *_: None)
    return PromptBuilder(tokenizer, 0)


def test_answers_without_tokens_of_their_own_are_read(
    model: LlamaForCausalLM, geometry: RopeGeometry, reading: PromptBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for the text is kept free; a number that begins with the key is another number."""
    (real,) = measure_passkey(model, parse_method("none"), geometry, reading, [160], [0.5], 2)
    assert real.answer_logprob is None and real.num_differing is None and real.trials == 2
    assert real.depths[0].prompt_tokens == 152 and real.depths[0].answer_tokens == 8
    texts = [" {}.", "\n{}", " {}7", " {} ", "key **{}**", "", " 1, not {}"]

    def written(_: Any, trials: Any, **__: Any) -> list[TrialScore]:
        assert all(not trial.answer_ids and trial.seq_len == 160 for trial in trials)
        said = [text.format(trial.references[0]) for text, trial in zip(texts, trials, strict=True)]
        return [
            TrialScore(False, None, tuple(reading.tokenizer.encode(text, add_special_tokens=False))) for text in said
        ]

    monkeypatch.setattr(measure, "walk", written)
    (measured,) = measure_passkey(model, parse_method("none"), geometry, reading, [160], [0.5], len(texts))
    assert measured.correct == 4


def test_a_distractor_is_a_wrong_answer(
    model: LlamaForCausalLM, geometry: RopeGeometry, reading: PromptBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(_: Any, trials: Any, **__: Any) -> list[TrialScore]:
        said = []
        for number, trial in enumerate(trials):
            label = "A" if number % 2 else "B"
            key = reading.text(trial.input_ids).split(f"The pass key {label} is ")[1][:5]
            said.append(TrialScore(False, None, tuple(reading.tokenizer.encode(f" {key}", add_special_tokens=False))))
        return said

    monkeypatch.setattr(measure, "walk", written)
    (measured,) = measure_passkey(model, parse_method("none"), geometry, reading, [300], [0.5], 4, distractors=2)
    assert measured.correct == 2


def test_generation_that_says_otherwise_is_counted(
    model: LlamaForCausalLM, geometry: RopeGeometry, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any, trials: Any, **__: Any) -> list[TrialScore]:
        texts = [tuple(trial.answer_ids) if number else (5, 6) for number, trial in enumerate(trials)]
        return [TrialScore(True, -1.0, text) for text in texts]

    monkeypatch.setattr(measure, "walk", broken)
    builder = PromptBuilder(tokenizer, 0)
    (measured,) = measure_passkey(model, parse_method("none"), geometry, builder, [160], [0.5], 4, generate=True)
    assert measured.correct == 3 and measured.num_differing == 1 and measured.depths[0].num_differing == 1
