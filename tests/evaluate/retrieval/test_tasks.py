"""Scores of retrieval tasks: through the whole path, with models that know the answers and models that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast

from ropectl.evaluate.judging.statistics import wilson_interval
from ropectl.evaluate.retrieval.measure import answer_prompts
from ropectl.evaluate.retrieval.prompts import Prompt, build_prompts, depth_grid
from ropectl.evaluate.retrieval.task_evaluation import evaluate_tasks, plan_tasks
from ropectl.evaluate.retrieval.task_scores import average, nothing_to_gain, task_result
from ropectl.evaluate.tasks_config import TasksConfig
from ropectl.hf.model.patch import apply_rope
from ropectl.records import TaskLength, TaskResult
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.registry import parse_method
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.registry import all_tasks, parse_task
from ropectl.tasks.task import RetrievalTask
from ropectl.tasks.trial import contained_share
from tests.conftest import tiny_config
from tests.evaluate.measured import CountingReporter
from tests.tasks.builders import make_builder

NAMES = list(all_tasks())
NONE = parse_method("none")


class Oracle(LlamaForCausalLM):
    """Knows what to say behind each prompt; anything else it continues with nonsense that depends on the call."""

    answers: dict[tuple[int, ...], list[int]]

    def forward(self, input_ids: Any = None, logits_to_keep: int = 0, **rest: Any) -> Any:
        rows = [self._row(row.tolist()) for row in input_ids]
        logits = torch.nn.functional.one_hot(torch.tensor(rows), self.config.vocab_size).float() * 50
        return CausalLMOutputWithPast(logits=logits[:, -logits_to_keep:] if logits_to_keep else logits)

    def _row(self, ids: list[int]) -> list[int]:
        says = [sum(ids) % self.config.vocab_size] * len(ids)
        for prompt, answer in self.answers.items():
            if tuple(ids[: len(prompt)]) == prompt:
                given = [*ids[len(prompt) :], None]
                for place, token in enumerate(answer[: len(given)]):
                    if given[:place] == answer[:place]:
                        says[len(prompt) - 1 + place] = token
        return says


@pytest.fixture(scope="module")
def builder(tokenizer: Any) -> PromptBuilder:
    return make_builder(tokenizer)


def grid(
    builder: PromptBuilder, task: RetrievalTask, lengths: list[int], depths: list[float], trials: int
) -> list[Prompt]:
    return build_prompts(task, builder, depth_grid(task, builder, lengths, depths), trials)


def measure_task(
    model: Any,
    method: ScalingMethod,
    geometry: RopeGeometry,
    task: RetrievalTask,
    builder: PromptBuilder,
    prompts: Sequence[Prompt],
    capacity: int | None = None,
) -> TaskResult:
    """From prompts to the record."""
    answered = answer_prompts(model, method, geometry, prompts, stop=nothing_to_gain(builder.tokenizer))
    trained = geometry.original_max_position_embeddings
    return task_result(task, builder.tokenizer, answered, trained, capacity=capacity)


def oracle(builder: PromptBuilder, prompts: Sequence[Prompt], shift: int = 0) -> Oracle:
    """A model that gives the answer of each trial, or that of another one."""
    trials = [prompt.trial for prompt in prompts]
    model = Oracle(tiny_config()).eval()
    spoken = [trial.answer_ids or builder.fragment(f" {', '.join(trial.references)}.") for trial in trials]
    model.answers = {
        tuple(trial.input_ids[: trial.answer_start]): spoken[(index + shift) % len(spoken)]
        for index, trial in enumerate(trials)
    }
    return model


@pytest.mark.process
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shift", "expected"), [(0, 1.0), (1, 0.0)])
def test_who_knows_the_answers_scores_one_and_who_gives_others_zero(
    builder: PromptBuilder, geometry: RopeGeometry, name: str, shift: int, expected: float
) -> None:
    """Right is only the asked trial's own answer."""
    task = parse_task(name)
    prompts = grid(builder, task, [task.min_length(builder) + 60], [0.5], 3)
    result = measure_task(oracle(builder, prompts, shift), NONE, geometry, task, builder, prompts)
    entry = result.lengths[0]
    assert entry.trials == len(entry.scores) == 3 and result.metric == task.metric
    by_luck = 0.2 if name == "common-words" else 0.0  # two lists of ten plain words may share one
    assert all(expected <= score <= expected + by_luck for score in [*entry.scores, entry.score])
    if entry.given:
        assert entry.given.score == entry.scores[0]


@pytest.mark.process
def test_half_an_answer_scores_half(builder: PromptBuilder, geometry: RopeGeometry) -> None:
    task = parse_task("multi-value")
    prompts = grid(builder, task, [400], [0.5], 4)
    model = oracle(builder, prompts)
    for answer, prompt in zip(model.answers.values(), prompts, strict=True):
        found = prompt.trial.references
        answer[:] = builder.fragment(f" {found[2]} or {found[0]}, I think.")
    entry = measure_task(model, NONE, geometry, task, builder, prompts).lengths[0]
    assert entry.score == 0.5 and entry.answer_logprob is None
    assert entry.given is not None and "I think" in entry.given.text and 0 <= entry.ci_low < 0.5 < entry.ci_high <= 1


@pytest.mark.process
@pytest.mark.parametrize("spec", ["needle", "multi-value", "passkey"])
def test_equals_one_generate_per_trial(
    model: LlamaForCausalLM, geometry: RopeGeometry, builder: PromptBuilder, spec: str
) -> None:
    """A walk over all lengths and depths answers as transformers' own ``generate`` does, trial by trial."""
    task, method = parse_task(spec), parse_method("yarn:factor=4")
    prompts = grid(builder, task, [340, 400], [0.0, 1.0], 2)
    measured = measure_task(model, method, geometry, task, builder, prompts)
    scores = [score for entry in measured.lengths for score in entry.scores]
    first_texts = []
    with apply_rope(model, method, geometry=geometry, seq_len=400):
        for index, (prompt, score) in enumerate(zip(prompts, scores, strict=True)):
            trial = prompt.trial
            start = torch.tensor([trial.input_ids[: trial.answer_start]])
            count = len(trial.answer_ids) or trial.max_new_tokens
            generated = model.generate(
                start, attention_mask=torch.ones_like(start), max_new_tokens=count, do_sample=False, pad_token_id=0
            )[0, trial.answer_start :].tolist()
            text = builder.tokenizer.decode(generated, skip_special_tokens=True)
            if trial.answer_ids:
                assert score == float(generated == trial.answer_ids)
            else:
                assert score == contained_share(text, trial.references)
            if index in (0, len(prompts) // 2):  # the first of each length
                first_texts.append(text)
    if task.metric == "contained":
        given = [entry.given.text for entry in measured.lengths if entry.given]
        assert given == first_texts


@pytest.mark.process
@pytest.mark.parametrize("spec", ["needle", "multi-query"])
@pytest.mark.parametrize("method", ["dynamic-ntk", "pi:factor=4"])
def test_lengths_measured_together_are_those_measured_alone(
    model: LlamaForCausalLM, geometry: RopeGeometry, builder: PromptBuilder, spec: str, method: str
) -> None:
    """D4 of the design: a method that follows the length is frozen at each, whatever else is measured."""
    task = parse_task(spec)

    def measure(lengths: list[int]) -> TaskResult:
        prompts = grid(builder, task, lengths, [0.0, 0.6], 2)
        return measure_task(model, parse_method(method), geometry, task, builder, prompts, capacity=420)

    together = measure([380, 440])
    for entry, alone in zip(together.lengths, [measure([380]), measure([440])], strict=True):
        other = alone.lengths[0]
        assert (entry.scores, entry.depths and [cell.position for cell in entry.depths]) == (
            other.scores,
            other.depths and [cell.position for cell in other.depths],
        )
        assert (entry.answer_logprob or 0.0) == pytest.approx(other.answer_logprob or 0.0, rel=1e-5)
        assert entry.given == other.given
    assert [entry.beyond_capacity for entry in together.lengths] == [False, True]


def test_no_trial_counts_twice(builder: PromptBuilder) -> None:
    """In a short prompt several depths are one position."""
    task = parse_task("needle")
    length = task.min_length(builder)
    assert depth_grid(task, builder, [length], [0.0, 0.5, 1.0]) == [(length, 0.0)]


@pytest.mark.process
def test_tasks_without_depths_take_as_many_prompts_a_length() -> None:
    plan = plan_tasks(TasksConfig(tasks=("multi-value", "needle"), lengths=(512, 600), depths=3, trials=2))["plan"]
    assert [task["prompts"] for task in plan] == [12, 12]


def test_average_counts_each_task_once() -> None:
    def result(scores: list[float], trials: int) -> TaskResult:
        entries = [
            TaskLength(length, score, trials, 0, 1, 1, 1, None, [score] * trials)
            for length, score in zip([100, 200], scores, strict=True)
        ]
        return TaskResult("t", "exact", None, None, "", entries)

    averages = average([result([1.0, 0.5], 25), result([0.0, 0.25], 5), result([0.5, 0.0], 100)])
    assert [(entry.length, entry.score, entry.tasks, entry.trials) for entry in averages] == [
        (100, 0.5, 3, 5),
        (200, 0.25, 3, 5),
    ]
    assert [(entry.ci_low, entry.ci_high) for entry in averages] == [
        wilson_interval(65, 130),
        wilson_interval(32.5, 130),
    ]


@pytest.mark.process
def test_record_is_whole() -> None:
    """The JSON that other programs read; built-in model and text."""
    config = TasksConfig(tasks=("passkey", "multi-value"), lengths=(384, 512), depths=2, trials=1)
    record = evaluate_tasks(config)
    assert record["method"] == "none" and record["prompt_format"] == "raw" and record["text"] == "builtin:stdlib"
    assert [task["task"] for task in record["tasks"]] == ["passkey", "multi-value"]
    for task in record["tasks"]:
        assert {"task", "metric", "chance", "uses", "prompts_sha256", "lengths"} < set(task)
        for entry in task["lengths"]:
            assert entry["prompt_tokens"] + entry["answer_tokens"] == entry["length"]
            assert (
                entry["trials"] == len(entry["scores"]) == 2 and entry["ci_low"] <= entry["score"] <= entry["ci_high"]
            )
    assert [entry["length"] for entry in record["average"]] == [384, 512]
    assert [one["outcome"] for one in record["reach"]["uses_at"]] == ["no"] * 2, (
        "two of two tasks fail, of which four prompts are sure"
    )
    assert record["manifest"]["config"]["seed"] == 0 and "torch" in record["manifest"]["versions"]
    plan = plan_tasks(config)
    assert plan["plan"] == record["manifest"]["plan"]
    assert evaluate_tasks(config)["tasks"] == record["tasks"]


@pytest.mark.process
def test_progress_adds_up(tokenizer: Any) -> None:
    counter = CountingReporter()
    evaluate_tasks(TasksConfig(tasks=("needle", "key-value"), lengths=(384,), depths=2, trials=1), counter)
    assert counter.total == counter.done > 0
