"""Scores of retrieval tasks, of one model under one method: settings in, record out.

Whatever runs models is imported where it is first needed, as in :mod:`ropectl.evaluate.perplexity.evaluation`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.data.sources import open_source
from ropectl.errors import ConfigError, DataError
from ropectl.evaluate.cost import ForwardCost
from ropectl.evaluate.judging.verdict_sentences import doubt
from ropectl.evaluate.request import manifest, method_and_lengths
from ropectl.evaluate.retrieval.prompts import Prompt, build_prompts, cost_of, count_tokens, depth_grid
from ropectl.evaluate.retrieval.task_scores import average, average_uses, nothing_to_gain, task_result
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import DEFAULT_TEXT, evenly_spaced
from ropectl.evaluate.tasks_config import TasksConfig
from ropectl.lengths import format_length
from ropectl.records import EvaluationRecord, PlannedTask, TasksManifest, TasksReach, TasksRecord, to_json
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.chat import chat_turn, check_bos
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.registry import parse_task, parse_tasks
from ropectl.tasks.task import RetrievalTask
from ropectl.tasks.text_stream import START_RANGE, TextStream
from ropectl.timing.operations import NOTHING


@dataclass(frozen=True)
class _Request:
    """Everything that is decided before weights load."""

    config: TasksConfig
    setup: Setup
    tasks: list[RetrievalTask]
    method: ScalingMethod
    lengths: list[int]
    builder: PromptBuilder
    stream: TextStream
    notes: list[str]

    @classmethod
    def of(cls, config: TasksConfig, specs: Sequence[str]) -> _Request:
        tasks = parse_tasks(specs)
        if config.text != DEFAULT_TEXT and not any(getattr(task, "haystack", "") == "text" for task in tasks):
            raise ConfigError(
                "--text is used by none of these tasks: they make their own text.", "One that uses it: --task needle"
            )
        if config.chat:
            check_bos(config.bos)
        setup = Setup.of(config)
        method, lengths, notes = method_and_lengths(setup, config.method, config.lengths)
        tokenizer = setup.tokenizer
        stream = TextStream(config.text, open_source(config.text), tokenizer, setup.vocabulary)
        chat = chat_turn(tokenizer) if config.chat else None
        builder = PromptBuilder(tokenizer, setup.bos_token_id, config.seed, stream, chat)
        if not config.lengths:
            shortest = max(task.min_length(builder) for task in tasks)
            dropped = [str(length) for length in lengths if length < shortest]
            if dropped and len(dropped) < len(lengths):
                lengths = [length for length in lengths if length >= shortest]
                notes.append(
                    f"Too short for the prompts of these tasks ({shortest} tokens) and left out: {', '.join(dropped)}."
                )
        for task in tasks:
            task.check_length(builder, lengths[0], ", or other tasks: --task NAME")
        return cls(config, setup, tasks, method, lengths, builder, stream, notes)

    def prompts(self) -> list[list[Prompt]]:
        """Returns the prompts of each task; errors in them show before weights load."""
        depths, trials = evenly_spaced(self.config.depths), self.config.trials
        return [
            build_prompts(
                task,
                self.builder,
                depth_grid(task, self.builder, self.lengths, depths),
                trials if task.has_depths else trials * len(depths),
                self.config.seeds,
            )
            for task in self.tasks
        ]

    def chat_record(self) -> dict[str, Any]:
        """Returns the format of prompts, and a hash of the chat template if there is one."""
        if self.builder.chat is None:
            return {"prompt_format": "raw"}
        template = str(self.setup.tokenizer.chat_template)
        return {"prompt_format": "chat", "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest()}


def evaluate_tasks(config: TasksConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns the scores of retrieval tasks over lengths of one model under one method.

    Args:
        config: What to measure; by default every task on ``builtin:tiny`` as it is.
        reporter: Receives progress and notes.

    Returns:
        A :class:`~ropectl.records.TasksRecord` as plain JSON values.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or TasksConfig(), reporter or Reporter()
    request = _Request.of(config, config.tasks)
    prompts = request.prompts()
    plan = _plan(request, prompts)
    for note in request.notes:
        reporter.note(note)
    from ropectl.evaluate.retrieval.measure import answer_prompts

    setup, method, tokenizer = request.setup, request.method, request.setup.tokenizer
    model = setup.model
    forward = ForwardCost.of(setup.source.config)
    costs = [cost_of(method, own, forward) for own in prompts]
    most_tokens = sum(task.distinct_tokens + task.most_generated for task in plan)
    reporter.start("measuring", most_tokens, cost=sum(costs, NOTHING))
    results = []
    for task, own, cost in zip(request.tasks, prompts, costs, strict=True):
        reporter.cell(method.label, str(task), cost)
        answered = answer_prompts(
            model, method, setup.geometry, own, layers=setup.source.rope.layer_type,
            prefill_chunk=config.prefill_chunk, stop=nothing_to_gain(tokenizer),
            progress=forward.reported(reporter.advance),
        )  # fmt: skip
        capacity = setup.source.rope.capacity(method)
        results.append(task_result(task, tokenizer, answered, setup.trained_length, config.used_score, capacity))
    averages = average(results)
    uses = average_uses(results, averages, config.used_score, setup.trained_length)
    record = TasksRecord(
        **request.chat_record(),
        model=config.model,
        method=str(method),
        geometry=setup.geometry,
        text=config.text,
        tasks=results,
        average=averages,
        reach=TasksReach(uses.certain, config.used_score, uses.possible, uses.at),
        manifest=TasksManifest(**manifest(setup), plan=plan),
    )
    return to_json(record)


def failed_gate(record: Mapping[str, Any], min_score: float | None) -> list[str]:
    """Returns a line for each length whose average is below the wanted one; none without one."""
    if min_score is None:
        return []
    return [
        f"At {entry['length']} tokens the score is {entry['score']:.3f}, below {min_score:g}{doubt(entry, min_score, '.3f')}."
        for entry in record["average"]
        if entry["score"] < min_score
    ]


def plan_tasks(config: TasksConfig) -> dict[str, Any]:
    """Returns what ``evaluate_tasks`` would run: prompts and tokens by task; no weights are loaded.

    Raises:
        RopectlError: If the request cannot work.
    """
    request = _Request.of(config, config.tasks)
    begins_as = EvaluationRecord(model=config.model, method=str(request.method), geometry=request.setup.geometry)
    return {
        **to_json(begins_as),
        "text": config.text,
        **request.chat_record(),
        "lengths": request.lengths,
        "plan": [to_json(task) for task in _plan(request, request.prompts())],
        "notes": request.notes,
    }


def example_prompt(config: TasksConfig, spec: str) -> dict[str, Any]:
    """Returns the first prompt of a task at the shortest wanted length, as text; no weights are loaded.

    Args:
        config: The settings; its tasks do not matter.
        spec: The task.

    Raises:
        RopectlError: If the request cannot work.
    """
    task = parse_task(spec)
    request = _Request.of(config, [spec])
    depths = evenly_spaced(config.depths)
    depth = depths[len(depths) // 2] if task.has_depths else None
    trial = task.build(request.builder, request.lengths[0], depth, 0)
    decode = request.setup.tokenizer.decode
    return {
        "task": str(task),
        **request.chat_record(),
        "length": request.lengths[0],
        "depth": depth,
        "prompt_tokens": trial.answer_start,
        "prompt": decode(trial.input_ids[: trial.answer_start]),
        "answer": decode(trial.answer_ids) if trial.answer_ids else None,
        "references": list(trial.references),
        "max_new_tokens": trial.max_new_tokens,
    }


def _plan(request: _Request, prompts: Sequence[Sequence[Prompt]]) -> list[PlannedTask]:
    """Returns the prompts and tokens of each task; adds to the notes if the text is too short for its prompts."""
    plan = [
        PlannedTask(
            task=str(task),
            prompts=len(own),
            tokens=sum(len(prompt.trial.input_ids) for prompt in own),
            distinct_tokens=count_tokens(request.method, own),
            most_generated=sum(prompt.trial.max_new_tokens for prompt in own),
        )
        for task, own in zip(request.tasks, prompts, strict=True)
    ]
    longest = max(request.lengths)
    total = request.stream.repeats_within(START_RANGE + longest)
    if total is not None and total < longest:
        short = f"{request.config.text} has only {total} tokens: prompts of {format_length(longest)} repeat it."
        if request.config.strict:
            raise DataError(short, "Give longer text: --text FILE, shorter lengths, or leave out --strict.")
        request.notes.append(short)
    return plan
