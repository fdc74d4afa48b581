"""What holds for every registered task, whatever it asks."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.errors import ConfigError
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.registry import all_tasks, describe_task, parse_task
from ropectl.tasks.task import BUDGET_FACTOR, CONTAINED, EXACT, RetrievalTask
from ropectl.tasks.trial import Trial
from tests.tasks.builders import BOS, make_builder, merging_tokenizer, spaced_tokenizer
from tests.tasks.solvers import SOLVERS, answers_in

NAMES = list(all_tasks())
SPECS = [
    *NAMES,
    "passkey:distractors=3",
    "needle:haystack=filler,digits=5",
    "multi-key:distractors=9",
    "multi-key:haystack=filler",
    "multi-value:values=8",
    "multi-query:queries=2,haystack=filler",
    "variable-tracking:chains=3,hops=2",
    "variable-tracking:haystack=text",
    "variable-tracking:chains=5,hops=4",
    "multi-key:distractors=20",
    "key-value:form=number",
    "common-words:common=3,times=9,others=2",
    "frequent-words:alpha=1.5",
]
DEPTHS = [0.0, 0.3, 0.5, 1.0]


@pytest.fixture(scope="module")
def builder(tokenizer: Any) -> PromptBuilder:
    return make_builder(tokenizer)


@pytest.fixture(scope="module")
def others(tokenizer: Any) -> tuple[PromptBuilder, PromptBuilder]:
    """One that is asked for other things before, and one with another seed."""
    return make_builder(tokenizer), make_builder(tokenizer, seed=1)


def places(task: RetrievalTask) -> list[float | None]:
    return list(DEPTHS) if task.has_depths else [None]


def trials_of(task: RetrievalTask, builder: PromptBuilder, length: int, count: int = 3) -> list[Trial]:
    return [task.build(builder, length, depth, number) for depth in places(task) for number in range(count)]


def test_every_solver_solves_a_task() -> None:
    assert set(SOLVERS) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_is_described(name: str) -> None:
    kind = all_tasks()[name]
    entry = describe_task(kind)
    assert entry["name"] == name and entry["metric"] in (EXACT, CONTAINED)
    assert all(entry[key] for key in ("title", "summary", "measures", "reference"))
    assert all(parameter["help"] for parameter in entry["parameters"])
    assert (entry["chance"] is not None) == (entry["metric"] == EXACT)
    assert entry["chance"] is None or 0 < entry["chance"] <= 0.5


@pytest.mark.parametrize("spec", SPECS)
def test_spec_makes_the_same_task_again(spec: str) -> None:
    task = parse_task(spec)
    again = parse_task(str(task))
    assert again == task and hash(again) == hash(task) and str(again) == str(task)


@pytest.mark.process
@pytest.mark.parametrize("spec", SPECS)
def test_prompt_and_answer_are_the_length(builder: PromptBuilder, spec: str) -> None:
    """Nothing is cut, one BOS comes first, and there is room for the answer."""
    task = parse_task(spec)
    shortest = task.min_length(builder)
    for length in (shortest, shortest + 1, shortest + 37, 1500):
        for trial in trials_of(task, builder, length):
            assert trial.seq_len == length
            assert trial.input_ids[0] == BOS and trial.input_ids.count(BOS) == 1
            if task.metric == EXACT:
                assert trial.answer_ids and not trial.references and trial.max_new_tokens == 0
            else:
                written = ", ".join(trial.references)
                assert trial.references and trial.answer_start == len(trial.input_ids)
                assert trial.max_new_tokens >= len(builder.fragment(f" {written}."))
                assert trial.max_new_tokens <= BUDGET_FACTOR * 2 * len(builder.fragment(f" {written}."))


@pytest.mark.process
@pytest.mark.parametrize("spec", SPECS)
def test_the_prompt_holds_the_answer_and_no_other(builder: PromptBuilder, spec: str) -> None:
    """Each task solved again from its text alone, where there is a solver; all facts are whole."""
    task = parse_task(spec)
    for length in (task.min_length(builder), task.min_length(builder) + 50, 1500):
        for trial in trials_of(task, builder, length, 5):
            text = builder.tokenizer.decode(trial.input_ids[: trial.answer_start])
            if task.metric == EXACT:
                answer = builder.tokenizer.decode(trial.answer_ids)
                assert answer[0] == " " and answers_in(task.name, text, [answer[1:]]) == [answer[1:]]
            else:
                assert sorted(answers_in(task.name, text, trial.references)) == sorted(trial.references)


@pytest.mark.parametrize("spec", SPECS)
def test_trials_differ(builder: PromptBuilder, spec: str) -> None:
    """Other answers, not other orders of one."""
    task = parse_task(spec)
    for depth in places(task):
        trials = [task.build(builder, 1000, depth, number) for number in range(10)]
        answers = {trial.references or tuple(trial.answer_ids) for trial in trials}
        assert len(answers) == 10


@pytest.mark.process
@pytest.mark.parametrize("spec", SPECS)
def test_a_trial_is_the_same_whatever_else_is_built(
    builder: PromptBuilder, others: tuple[PromptBuilder, PromptBuilder], spec: str
) -> None:
    task = parse_task(spec)
    depth = places(task)[-1]
    before = task.build(builder, 1200, depth, 4)
    trials_of(task, builder, 700)
    assert task.build(builder, 1200, depth, 4) == before == task.build(others[0], 1200, depth, 4)
    assert task.build(others[1], 1200, depth, 4) != before


@pytest.mark.parametrize("spec", SPECS)
def test_too_short_is_refused_with_the_shortest_possible(builder: PromptBuilder, spec: str) -> None:
    """Never truncated."""
    task = parse_task(spec)
    shortest = task.min_length(builder)
    for length in (2, shortest - 1):
        with pytest.raises(ConfigError, match=rf"length = {length} tokens.*{task.name}.* {shortest} tokens"):
            task.build(builder, length, places(task)[0], 0)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if parse_task(spec).has_depths])
def test_the_asked_fact_is_at_its_depth(builder: PromptBuilder, spec: str) -> None:
    task = parse_task(spec)
    for length in (task.min_length(builder) + 3, 1000, 2000):
        for depth in DEPTHS:
            trial = task.build(builder, length, depth, 1)
            answer = builder.tokenizer.decode(trial.answer_ids).strip(' "')
            at = task.position(builder, length, depth)
            if task.name == "key-value":  # a whole number of lines comes before it; none has 100 tokens
                assert answer in builder.tokenizer.decode(trial.input_ids[max(0, at - 100) : at + 100])
            else:
                assert answer not in builder.tokenizer.decode(trial.input_ids[:at])
                assert answer in builder.tokenizer.decode(trial.input_ids[at : at + 60])
            if length >= 1000 and 0.0 < depth < 1.0:
                assert at == round(depth * length)


@pytest.mark.parametrize("name", ["passkey", "needle", "key-value"])
def test_one_position_is_one_trial_at_every_length(builder: PromptBuilder, name: str) -> None:
    """All before the question is shared, so that a walk computes it once."""
    task = parse_task(name)
    short, long = task.build(builder, 1000, 0.5, 2), task.build(builder, 2000, 0.25, 2)
    assert short.answer_ids == long.answer_ids
    question = 1000 - 160  # the question and the answer take less
    assert short.input_ids[:question] == long.input_ids[:question]


@pytest.mark.parametrize("name", ["needle", "multi-key", "key-value"])
def test_depths_share_what_stands_before_them(builder: PromptBuilder, name: str) -> None:
    task = parse_task(name)
    one, other = task.build(builder, 1500, 0.6, 0), task.build(builder, 1500, 0.9, 0)
    shared = next(i for i, (a, b) in enumerate(zip(one.input_ids, other.input_ids, strict=False)) if a != b)
    assert shared > (700 if name != "multi-key" else len(builder.head(task.instruction)))


@pytest.mark.parametrize("spec", SPECS)
def test_a_tokenizer_that_adds_a_leading_space_is_spliced_cleanly(spec: str) -> None:
    """A character a token; whatever is encoded gets a space in front, of which none may stay."""
    tokenizer = spaced_tokenizer()
    builder, task = make_builder(tokenizer, bos=None), parse_task(spec)
    length = task.min_length(builder) + 400
    for trial in trials_of(task, builder, length, 2):
        text = "".join(tokenizer.convert_ids_to_tokens(trial.input_ids)).replace("\u2581", " ")
        assert trial.seq_len == length and "  " not in text
        prompt = "".join(tokenizer.convert_ids_to_tokens(trial.input_ids[: trial.answer_start])).replace("\u2581", " ")
        known = trial.references or [text[len(prompt) :].strip()]
        assert sorted(answers_in(task.name, prompt, known)) == sorted(known)


@pytest.mark.parametrize("name", ["passkey", "needle", "multi-key"])
def test_answers_without_tokens_of_their_own_are_generated(name: str) -> None:
    """A tokenizer that keeps spaces with the word before them joins the question with the answer."""
    builder, task = make_builder(merging_tokenizer(), bos=None), parse_task(name)
    for length in (task.min_length(builder), task.min_length(builder) + 300):
        for trial in trials_of(task, builder, length):
            text = builder.tokenizer.decode(trial.input_ids)
            assert trial.seq_len == length and trial.answer_start == len(trial.input_ids)
            assert list(trial.references) == SOLVERS[name](text) and trial.max_new_tokens > len(trial.references[0])
