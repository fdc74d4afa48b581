"""Retrieval tasks for people: results, the tasks themselves, what would run, and one prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ropectl.lengths import format_length
from ropectl.records import MIN_TRIALS
from ropectl.report.layout import BEYOND_MARK, NOT_AVAILABLE, beyond_legend, column_groups, length_column, table_of

#: Length columns that fit 80 columns beside the task's name, each with its interval.
LENGTHS_PER_TABLE = 4

#: Depths are shown for so many tasks; for more they would bury the scores, and the record has them.
MAX_DEPTH_TABLES = 2

DEPTHS_PER_TABLE = 6

#: Characters of a prompt that are shown at its ends, and on each side of what is asked for.
ENDS, AROUND = 500, 160

AVERAGE = "average"
NONE_MARK = "-"
SAME_POSITION = "-"


def tasks_parts(record: Mapping[str, Any]) -> list[Table | Text]:
    """Returns the tables of ``eval-tasks``: scores by task and length, what each is, and depths of a few tasks."""
    tasks, averages = record["tasks"], record["average"]
    trained = record["geometry"]["original_max_position_embeddings"]
    parts: list[Table | Text] = []
    for group in column_groups(range(len(averages)), LENGTHS_PER_TABLE):
        columns = [length_column(averages[index]["length"], trained) for index in group]
        table = _table("Score in %, 95 % interval (L: trained)", columns, "task")
        for result in tasks:
            table.add_row(result["task"], *(_score(result["lengths"][index]) for index in group))
        if len(tasks) > 1:
            table.add_section()
            table.add_row(AVERAGE, *(_percent(averages[index]) for index in group))
        parts.append(table)
    parts.append(_verdicts(record))
    if any(result["uses"] is None for result in tasks):
        parts.append(Text(f"uses {NOT_AVAILABLE}: fewer than {MIN_TRIALS} prompts at a length"))
    with_depths = [result for result in tasks if result["lengths"][0]["depths"]]
    if len(with_depths) <= MAX_DEPTH_TABLES:
        for result in with_depths:
            parts.extend(_depth_tables(result))
    return [*parts, *beyond_legend(entry["beyond_capacity"] for entry in averages)]


def _verdicts(record: Mapping[str, Any]) -> Table:
    tasks, reach = record["tasks"], record["reach"]
    title = f"Uses: longest length with {reach['used_score']:.0%} at it and every shorter one"
    table = _table(title, ["metric", "chance", "trials a length", "uses"], "task")
    for result in tasks:
        chance = NONE_MARK if result["chance"] is None else f"{result['chance']:.0e}"
        chance = f"{result['chance']:.0%}" if result["chance"] and result["chance"] >= 0.01 else chance
        trials = sorted({entry["trials"] for entry in result["lengths"]})
        shown = str(trials[0]) if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
        table.add_row(result["task"], result["metric"], chance, shown, _uses(result["uses"]))
    if len(tasks) > 1:
        table.add_section()
        table.add_row(AVERAGE, "", "", "", _uses(reach["uses"]))
    return table


def _uses(uses: int | None) -> str:
    return NOT_AVAILABLE if uses is None else str(uses or NONE_MARK)


def _depth_tables(result: Mapping[str, Any]) -> Iterator[Table]:
    depths = sorted({cell["depth"] for entry in result["lengths"] for cell in entry["depths"]})
    for group in column_groups(depths, DEPTHS_PER_TABLE):
        title = f"{result['task']}: score in % by depth"
        table = _table(title, [f"{depth:.0%}" for depth in group], "length")
        for entry in result["lengths"]:
            found = {cell["depth"]: f"{100 * cell['score']:.0f}" for cell in entry["depths"]}
            table.add_row(str(entry["length"]), *(found.get(depth, SAME_POSITION) for depth in group))
        yield table


def task_list_parts(entries: Sequence[Mapping[str, Any]]) -> list[Table | Text]:
    """Returns the known tasks, with their parameters."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("task", "measures", "metric", "parameters"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        parameters = ", ".join(f"{one['name']}={_value(one['default'])}" for one in entry["parameters"])
        table.add_row(entry["name"], entry["measures"], entry["metric"], parameters)
    return [
        table,
        Text("exact: every answer token is the most likely one given those before it."),
        Text("contained: share of the references that the generated text contains."),
    ]


def plan_parts(record: Mapping[str, Any]) -> list[Table | Text]:
    """Returns what a run would compute."""
    lengths = ", ".join(map(format_length, record["lengths"]))
    table = _table(f"Lengths {lengths}", ["prompts", "tokens", "computed", "generated at most"], "task")
    keys = ("prompts", "tokens", "distinct_tokens", "most_generated")
    for entry in record["plan"]:
        table.add_row(entry["task"], *(f"{entry[key]:,}" for key in keys))
    table.add_section()
    table.add_row("all", *(f"{sum(entry[key] for entry in record['plan']):,}" for key in keys))
    return [table, Text("computed: prompts share their beginnings, and each is computed once.")]


def prompt_lines(example: Mapping[str, Any]) -> list[str]:
    """Returns one prompt, shortened in the middle, and what its answer has to be."""
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
    """Returns the ends of a prompt and what is around the first places of some texts."""
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


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _score(entry: Mapping[str, Any]) -> str:
    return f"{_percent(entry)} ({100 * entry['ci_low']:.0f}-{100 * entry['ci_high']:.0f})"


def _percent(entry: Mapping[str, Any]) -> str:
    return f"{100 * entry['score']:.0f}{BEYOND_MARK if entry['beyond_capacity'] else ''}"


def _table(title: str, columns: Sequence[str], first: str) -> Table:
    """A table that is not narrower than its title, which would be broken."""
    table = table_of(title, columns, first)
    table.min_width = len(title)
    return table
