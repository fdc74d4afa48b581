"""Retrieval tasks of one model under one method: configuration in, JSON document out.

What runs models is imported where it is first needed, as in :mod:`ropectl.evaluate.perplexity.evaluation`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.data.chat import chat_frame, check_bos
from ropectl.data.sources import open_source
from ropectl.errors import ConfigError
from ropectl.evaluate.request import header, manifest, method_and_lengths
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import DEFAULT_TEXT
from ropectl.evaluate.tasks_config import TasksConfig
from ropectl.evaluate.verdicts import uses_length
from ropectl.lengths import format_length
from ropectl.records import to_json
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.haystack import START_RANGE, TextStream
from ropectl.tasks.kit import PromptKit
from ropectl.tasks.registry import parse_task, parse_tasks
from ropectl.tasks.task import RetrievalTask


@dataclass(frozen=True)
class _Request:
    """Everything that is decided before weights load."""

    config: TasksConfig
    setup: Setup
    tasks: list[RetrievalTask]
    method: ScalingMethod
    lengths: list[int]
    kit: PromptKit
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
        chat = chat_frame(tokenizer) if config.chat else None
        kit = PromptKit(tokenizer, setup.bos_token_id, stream, config.seed, chat)
        if not config.lengths:
            shortest = max(task.min_length(kit) for task in tasks)
            dropped = [str(length) for length in lengths if length < shortest]
            if dropped and len(dropped) < len(lengths):
                lengths = [length for length in lengths if length >= shortest]
                notes.append(
                    f"Too short for the prompts of these tasks ({shortest} tokens) and left out: {', '.join(dropped)}."
                )
        for task in tasks:
            task.check_length(kit, lengths[0])
        return cls(config, setup, tasks, method, lengths, kit, stream, notes)

    def frame_record(self) -> dict[str, Any]:
        """What stands around the text, and what it was made from."""
        if self.kit.chat is None:
            return {"prompt_format": "raw"}
        template = str(self.setup.tokenizer.chat_template)
        return {"prompt_format": "chat", "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest()}


def evaluate_tasks(config: TasksConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns the scores of retrieval tasks over lengths of one model under one method.

    Args:
        config: What to measure; by default every task on ``builtin:tiny`` as it is.
        reporter: Told about progress and notes.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or TasksConfig(), reporter or Reporter()
    request = _Request.of(config, config.tasks)
    plan = _plan(request)
    for note in request.notes:
        reporter.note(note)
    from ropectl.evaluate.tasks import asked_trials, average, measure_task

    setup, method, kit = request.setup, request.method, request.kit
    model = setup.model
    reporter.start("measuring", sum(entry["distinct_tokens"] + entry["most_generated"] for entry in plan))
    results = []
    for task in request.tasks:
        reporter.cell(method.label, str(task))
        asked = asked_trials(task, kit, request.lengths, config.depth_values(), config.trials)
        measured = measure_task(
            model, method, setup.geometry, task, kit, asked,
            used_score=config.used_score, layers=setup.source.rope.layer_type,
            capacity=setup.source.rope.capacity(method), prefill_chunk=config.prefill_chunk, progress=reporter.advance,
        )  # fmt: skip
        results.append(measured)
    averages = average(results)
    entries = [(entry.length, entry.score, entry.trials) for entry in averages]
    uses = uses_length(entries, config.used_score, setup.trained_length)
    return {
        **header(setup, method),
        "text": config.text,
        **request.frame_record(),
        "tasks": [to_json(result) for result in results],
        "average": [to_json(entry) for entry in averages],
        "reach": {"uses": uses, "used_score": config.used_score},
        "manifest": {**manifest(setup), "plan": plan},
    }


def plan_tasks(config: TasksConfig) -> dict[str, Any]:
    """Returns what ``evaluate_tasks`` would run: prompts and tokens by task; no weights are loaded.

    Raises:
        RopectlError: If the request cannot work.
    """
    request = _Request.of(config, config.tasks)
    return {
        **header(request.setup, request.method),
        "text": config.text,
        **request.frame_record(),
        "lengths": request.lengths,
        "plan": _plan(request),
        "notes": request.notes,
    }


def example_prompt(config: TasksConfig, spec: str) -> dict[str, Any]:
    """Returns the first prompt of a task at the shortest wanted length, as text; no weights are loaded.

    Args:
        config: The settings; its own tasks do not matter.
        spec: The task.

    Raises:
        RopectlError: If the request cannot work.
    """
    task = parse_task(spec)
    request = _Request.of(config, [spec])
    depths = config.depth_values()
    depth = depths[len(depths) // 2] if task.has_depths else None
    trial = task.build(request.kit, request.lengths[0], depth, 0)
    decode = request.setup.tokenizer.decode
    return {
        "task": str(task),
        **request.frame_record(),
        "length": request.lengths[0],
        "depth": depth,
        "prompt_tokens": trial.answer_start,
        "prompt": decode(trial.input_ids[: trial.answer_start]),
        "answer": decode(trial.answer_ids) if trial.answer_ids else None,
        "references": list(trial.references),
        "max_new_tokens": trial.max_new_tokens,
    }


def _plan(request: _Request) -> list[dict[str, Any]]:
    """Builds every prompt once, so that what is wrong with one is found before weights load, and counts."""
    from ropectl.evaluate.prefix_tree import count_nodes
    from ropectl.evaluate.tasks import asked_trials, build_trials

    config, kit = request.config, request.kit
    plan = []
    for task in request.tasks:
        asked = asked_trials(task, kit, request.lengths, config.depth_values(), config.trials)
        trials = build_trials(task, kit, asked)
        groups = request.lengths if request.method.depends_on_seq_len else [None]
        walks = [[trial for trial in trials if length in (None, trial.seq_len)] for length in groups]
        plan.append(
            {
                "task": str(task),
                "prompts": len(trials),
                "tokens": sum(len(trial.input_ids) for trial in trials),
                "distinct_tokens": sum(map(count_nodes, walks)),
                "most_generated": sum(trial.max_new_tokens for trial in trials),
            }
        )
    total = request.stream.repeats_within(START_RANGE + max(request.lengths))
    if total is not None and total < max(request.lengths):
        length = format_length(max(request.lengths))
        request.notes.append(f"{config.text} has only {total} tokens: prompts of {length} repeat it.")
    return plan
