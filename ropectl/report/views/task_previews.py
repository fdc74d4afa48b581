"""The views of ``eval-tasks`` without a measurement: the known tasks, what a run would compute, and one prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.lengths import format_length
from ropectl.report.document import Column, Part, Row, Sentence, Table, View, cells, columns
from ropectl.specs import format_value
from ropectl.tasks.registry import parameters_of
from ropectl.tasks.task import RetrievalTask

#: Characters of a prompt that are shown at its ends, and on each side of the answer.
ENDS, AROUND = 500, 160


#: The meaning of the metrics.
METRIC_NOTES = (
    "exact: every answer token is the most likely one given those before it.",
    "contained: share of the references that the generated text contains.",
)


def task_list_parts(kinds: Sequence[type[RetrievalTask]]) -> list[Part]:
    """Returns the known tasks, with their parameters."""
    heads = [Column("measures", is_text=True), Column("metric", is_text=True), Column("parameters", is_text=True)]
    rows = []
    for kind in kinds:
        parameters = ", ".join(f"{one.name}={format_value(one.default)}" for one in parameters_of(kind))
        rows.append(Row(kind.name, cells([kind.measures, kind.metric, parameters])))
    return [
        Table("", "task", heads, rows),
        *map(Sentence, METRIC_NOTES),
    ]


def plan_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns what a run would compute."""
    lengths = ", ".join(map(format_length, record["lengths"]))
    keys = ("prompts", "tokens", "distinct_tokens", "most_generated")
    rows = [Row(entry["task"], cells(f"{entry[key]:,}" for key in keys)) for entry in record["plan"]]
    sums = [f"{sum(entry[key] for entry in record['plan']):,}" for key in keys]
    rows.append(Row("all", cells(sums), is_total=True))
    heads = columns(["prompts", "tokens", "computed", "generated at most"])
    table = Table(f"Lengths {lengths}", "task", heads, rows)
    return [table, Sentence("computed: prompts share their beginnings, and each is computed once.")]


def prompt_lines(example: Mapping[str, Any]) -> list[str]:
    """Returns one prompt, shortened in the middle, and the answer that counts."""
    depth = "" if example["depth"] is None else f", asked fact at depth {example['depth']:.0%}"
    wanted = example["references"] or [example["answer"].strip()]
    rule = (
        f"Answer, token by token:{example['answer']}"
        if example["answer"] is not None
        else f"Generated, at most {example['max_new_tokens']} tokens; must contain: {', '.join(wanted)}"
    )
    head = f"{example['task']}, {example['prompt_format']}: {example['prompt_tokens']} of {example['length']} tokens{depth}"
    return [head, "-" * len(head), *shortened(example["prompt"], wanted).split("\n"), "-" * len(head), rule]


def shortened(prompt: str, wanted: Sequence[str]) -> str:
    """Returns the ends of a prompt and the surroundings of the first occurrence of some texts."""
    spans = [(0, ENDS), (len(prompt) - ENDS, len(prompt))]
    for text in wanted:
        place = prompt.find(text)
        if place >= 0:
            spans.append((place - AROUND, place + len(text) + AROUND))
    result, done = "", 0
    for start, end in sorted((max(0, start), min(len(prompt), end)) for start, end in spans):
        if start > done:
            result += f" [... {start - done} characters ...] "
        result += prompt[max(start, done) : max(end, done)]
        done = max(done, end)
    return result


LIST = View(task_list_parts, is_headed=False)
PLAN = View(plan_parts, is_headed=False)
