"""A walk over shared prefixes gives every trial the numbers that it has alone, and computes each prefix once."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ropectl.errors import MeasurementError
from ropectl.evaluate.cost import ForwardPass
from ropectl.evaluate.forward import Forward
from ropectl.evaluate.retrieval import row_groups
from ropectl.evaluate.retrieval.prefix_tree import count_nodes, measure_tree
from ropectl.evaluate.retrieval.row_groups import MAX_BATCH_TOKENS, count_passes
from ropectl.evaluate.retrieval.walk import walk
from ropectl.tasks.trial import Trial
from scripts.tiny_models import VOCABULARY, tiny_model
from tests.conftest import make_model
from tests.evaluate.naive import answer, continuation, counted
from tests.tolerances import WALK

pytestmark = pytest.mark.usefixtures("one_thread")

GROUPED = make_model(num_key_value_heads=2)

#: A window shorter than the prompts, in every layer or every other; heads that scale their logits; latent attention;
#: layers that no cache can be cropped of (convolutions, states), and some that begin anew with every piece.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 8},
    "qwen2": {"sliding_window": 8, "use_sliding_window": True, "layer_types": ["sliding_attention", "full_attention"]},
    "gemma2": {"sliding_window": 8},
    "gemma3_text": {"sliding_window": 8},
    "gpt_oss": {"sliding_window": 8},
    "cohere": {},
    "granite": {},
    "llama4_text": {},
    "deepseek_v3": {},
    "qwen3_moe": {},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "falcon_h1": {},
    "qwen3_next": {},
    "recurrent_gemma": {},
    "bamba": {},
}

BASE = [(7 * i) % (VOCABULARY - 8) + 2 for i in range(60)]


def family_trials() -> list[Trial]:
    """Needles at two positions, prompts of four lengths: shared heads, side branches, batches."""
    result = []
    for end, kind in ((10, 0), (20, 0), (20, 1), (40, 0), (40, 1), (40, 2), (59, 0), (59, 1)):
        ids = BASE[: 8 + kind] + [3 + kind] * 2 + BASE[8 + kind : end] + [50, 51] + [5 + kind, 6, 7]
        result.append(Trial(ids, len(ids) - 3))
    return result


@st.composite
def prompt_sets(draw: st.DrawFn) -> list[Trial]:
    """Prompts that follow one text for a while, end at any place, and may be each other's beginning."""
    text = draw(st.lists(st.integers(0, 9), min_size=50, max_size=50))
    result = []
    for _ in range(draw(st.integers(1, 8))):
        own = draw(st.lists(st.integers(0, 9), min_size=2, max_size=8))
        ids = text[: draw(st.integers(0, 50))] + own
        result.append(Trial(ids, draw(st.integers(max(1, len(ids) - 4), len(ids) - 1))))
    return result


def until_end(model: Any, text: tuple[int, ...]) -> tuple[int, ...]:
    """The text before the first token that ends it."""
    ends = Forward.of(model).end_tokens
    return tuple(itertools.takewhile(lambda token: token not in ends, text))


@pytest.mark.process
@settings(max_examples=40, deadline=None)
@given(prompt_sets(), st.sampled_from([None, 2, 7]), st.sampled_from([1, 60, 200, 8192]), st.sampled_from([None, 0, 3]))
def test_random_prompts(trials: list[Trial], chunk: int | None, batch: int, words: int | None) -> None:
    """Grouped heads, any chunk, any batch, texts as long as answers or longer: as alone; the distinct prefixes are computed."""
    generate = words is not None
    assert Forward.of(GROUPED).shares  # what is tried out once is not counted
    done: list[ForwardPass] = []
    with counted(GROUPED) as tokens:
        scores = walk(
            GROUPED, trials, prefill_chunk=chunk, max_batch_tokens=batch, generate=generate, words=words or 0,
            progress=done.append,
        )  # fmt: skip
    assert sum(tokens) == sum(each.rows * each.tokens for each in done), "every pass is reported"
    if not generate:
        size = measure_tree(trials)
        assert sum(tokens) == count_nodes(trials)
        squares = sum(each.rows * ((each.before + each.tokens) ** 2 - each.before**2) for each in done)
        assert (squares, sum(each.scored for each in done)) == (size.squares, size.targets)
        if (chunk, batch) == (None, MAX_BATCH_TOKENS):
            assert len(done) == count_passes(trials)
    for trial, score in zip(trials, scores, strict=True):
        right, logprob = answer(GROUPED, trial)
        assert score.correct == right and score.answer_logprob == pytest.approx(logprob, abs=WALK)
        if generate:
            whole = continuation(GROUPED, trial.input_ids[: trial.answer_start], len(trial.answer_ids) + (words or 0))
            assert score.generated == until_end(GROUPED, whole) and score.is_cut == (score.generated == whole)
            assert (whole[: len(trial.answer_ids)] == tuple(trial.answer_ids)) == right


@pytest.mark.process
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chunk", [None, 5])
def test_families(family: str, chunk: int | None) -> None:
    """Whatever a cache is made of: as alone."""
    model, trials = tiny_model(family, **FAMILIES[family]), family_trials()
    scores = walk(model, trials, prefill_chunk=chunk, generate=True)
    for trial, score in zip(trials, scores, strict=True):
        right, logprob = answer(model, trial)
        assert score.correct == right and score.answer_logprob == pytest.approx(logprob, abs=WALK)
        assert score.generated == until_end(model, continuation(model, trial.input_ids[: trial.answer_start], 3))


@pytest.mark.parametrize("family", ["mistral", "gemma2", "falcon_h1"])
def test_families_that_cannot_be_cropped_still_share(family: str) -> None:
    model, trials = tiny_model(family, **FAMILIES[family]), family_trials()
    assert Forward.of(model).shares
    with counted(model) as tokens:
        walk(model, trials)
    assert sum(tokens) == count_nodes(trials)


def test_a_model_that_begins_anew_is_given_whole_prompts() -> None:
    model, trials = tiny_model("bamba"), family_trials()
    assert not Forward.of(model).shares
    with counted(model) as tokens:
        walk(model, trials)
    assert tokens == [len(trial.input_ids) - 1 for trial in trials]


def test_rows_go_together_and_no_more_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    original = Forward.run

    def watched(self: Forward, ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        shapes.append(tuple(ids.shape))
        return original(self, ids, *args, **kwargs)

    assert Forward.of(GROUPED).shares  # what is tried out once for each model is not counted
    monkeypatch.setattr(Forward, "run", watched)
    trials = [Trial([1, 2, 3, 4, *[10 + kind] * 16, 5], 20) for kind in range(6)]
    walk(GROUPED, trials)
    assert shapes == [(1, 4), (6, 16)]
    shapes.clear()
    walk(GROUPED, trials, max_batch_tokens=45)
    assert shapes == [(1, 4), (2, 16), (2, 16), (2, 16)]


def test_logits_only_where_an_answer_is_predicted() -> None:
    """The head sees the positions that predict an answer, and no other."""
    seen: list[int] = []
    hook = GROUPED.lm_head.register_forward_hook(lambda _m, inputs, _out: seen.append(inputs[0].shape[:-1].numel()))
    assert Forward.of(GROUPED).shares
    seen.clear()
    walk(GROUPED, family_trials())
    hook.remove()
    assert sum(seen) == 3 * len(family_trials())


def test_no_mask_without_a_cache_and_a_bounded_one_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    masks: list[tuple[int, ...] | None] = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def watched(query: Any, key: Any, value: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
        masks.append(None if attn_mask is None else tuple(attn_mask.shape[-2:]))
        return attend(query, key, value, attn_mask=attn_mask, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    monkeypatch.setattr(row_groups, "PIECE", 16)
    assert Forward.of(GROUPED).shares
    masks.clear()
    text = [2 + i % 50 for i in range(100)]
    walk(GROUPED, [Trial([*text[:60], kind, *text[60:], 1], 100) for kind in (60, 61)])
    assert masks[0] is None and {mask[0] for mask in masks if mask} <= set(range(1, 17))


def test_answers_that_are_generated() -> None:
    """Until the room is used up, an end token comes, or the caller says so; that token is not part of the text."""
    prompt = [5, 9, 2, 7]
    whole = continuation(GROUPED, prompt, 6)
    trials = [Trial(prompt, 4, ("x",), 6), Trial([*prompt, 3], 5, ("x",), 2)]
    scores = walk(GROUPED, trials)
    assert [score.generated for score in scores] == [whole, continuation(GROUPED, [*prompt, 3], 2)]
    assert not scores[0].correct and scores[0].answer_logprob is None
    assert walk(GROUPED, trials[:1], stop=lambda _, text: len(text) == 3)[0].generated == whole[:3]
    before = GROUPED.generation_config.eos_token_id
    GROUPED.generation_config.eos_token_id = [whole[2]]
    try:
        assert walk(GROUPED, trials[:1])[0].generated == whole[: whole.index(whole[2])]
    finally:
        GROUPED.generation_config.eos_token_id = before


def test_equal_prompts_with_other_answers_are_one_prefix() -> None:
    trials = [Trial([4, 5, 6, 7, token], 4) for token in (1, 2, 3, 1)]
    with counted(GROUPED) as tokens:
        scores = walk(GROUPED, trials)
    assert sum(tokens) == 4 and scores[0] == scores[3]
    assert len({score.answer_logprob for score in scores}) == 3


@pytest.mark.parametrize("max_new_tokens", [0, 2])
def test_a_model_that_computes_no_probabilities_is_refused(max_new_tokens: int) -> None:
    model = make_model()
    model.lm_head.weight.data.fill_(float("nan"))
    trial = Trial([1, 2, 3], 3, (), 2) if max_new_tokens else Trial([1, 2, 3], 2)
    with pytest.raises(MeasurementError, match="not finite"):
        walk(model, [trial])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_shares_too(dtype: torch.dtype) -> None:
    """Rounding is not taken for a model that begins anew."""
    model = make_model().to(dtype)
    assert Forward.of(model).shares
    with torch.autocast("cpu", torch.bfloat16):
        assert Forward.of(make_model()).shares
