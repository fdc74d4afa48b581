"""Retrieval tasks for people: results, the tasks themselves, what would run, and one prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.lengths import format_length
from ropectl.records import MIN_TRIALS
from ropectl.report.layout import BEYOND_MARK, NOT_AVAILABLE, beyond_legend, length_column
from ropectl.report.sheet import Cell, Column, Part, Row, Sentence, Sheet, cells, columns

#: Depths are shown for so many tasks; for more they would bury the scores, and the record has them.
MAX_DEPTH_TABLES = 2

#: Characters of a prompt that are shown at its ends, and on each side of what is asked for.
ENDS, AROUND = 500, 160

AVERAGE = "average"
NONE_MARK = "-"
SAME_POSITION = "-"


def tasks_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the tables of ``eval-tasks``: scores by task and length, what each is, and depths of a few tasks."""
    tasks, averages = record["tasks"], record["average"]
    parts: list[Part] = [_scores(record), _verdicts(record)]
    if any(result["uses"] is None for result in tasks):
        parts.append(Sentence(f"uses {NOT_AVAILABLE}: fewer than {MIN_TRIALS} prompts at a length"))
    with_depths = [result for result in tasks if result["lengths"][0]["depths"]]
    if len(with_depths) <= MAX_DEPTH_TABLES:
        parts.extend(_depth_table(result) for result in with_depths)
    return [*parts, *beyond_legend(entry["beyond_capacity"] for entry in averages)]


def _scores(record: Mapping[str, Any]) -> Sheet:
    tasks, averages = record["tasks"], record["average"]
    trained = record["geometry"]["original_max_position_embeddings"]
    rows = [
        Row(result["task"], [Cell(_score(entry), shade=entry["score"]) for entry in result["lengths"]])
        for result in tasks
    ]
    if len(tasks) > 1:
        shown = [Cell(_percent(entry), shade=entry["score"]) for entry in averages]
        rows.append(Row(AVERAGE, shown, is_total=True))
    heads = columns(length_column(entry["length"], trained) for entry in averages)
    return Sheet("Score in %, 95 % interval (L: trained)", "task", heads, rows)


def _verdicts(record: Mapping[str, Any]) -> Sheet:
    tasks, reach = record["tasks"], record["reach"]
    rows = []
    for result in tasks:
        chance = NONE_MARK if result["chance"] is None else f"{result['chance']:.0e}"
        chance = f"{result['chance']:.0%}" if result["chance"] and result["chance"] >= 0.01 else chance
        trials = sorted({entry["trials"] for entry in result["lengths"]})
        shown = str(trials[0]) if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
        rows.append(Row(result["task"], cells([result["metric"], chance, shown, _uses(result["uses"])])))
    if len(tasks) > 1:
        rows.append(Row(AVERAGE, cells(["", "", "", _uses(reach["uses"])]), is_total=True))
    title = f"Uses: at least {reach['used_score']:.0%} at every length from L up to it"
    return Sheet(title, "task", columns(["metric", "chance", "trials a length", "uses"]), rows)


def _uses(uses: int | None) -> str:
    return NOT_AVAILABLE if uses is None else str(uses or NONE_MARK)


def _depth_table(result: Mapping[str, Any]) -> Sheet:
    depths = sorted({cell["depth"] for entry in result["lengths"] for cell in entry["depths"]})
    found = [{cell["depth"]: cell["score"] for cell in entry["depths"]} for entry in result["lengths"]]
    rows = [Row(f"{depth:.0%}", [_depth_cell(scores.get(depth)) for scores in found]) for depth in depths]
    heads = columns(str(entry["length"]) for entry in result["lengths"])
    return Sheet(f"{result['task']}: score in % by depth", "depth", heads, rows)


def _depth_cell(score: float | None) -> Cell:
    return Cell(SAME_POSITION) if score is None else Cell(f"{100 * score:.0f}", shade=score)


def task_list_parts(entries: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Returns the known tasks, with their parameters."""
    heads = [Column("measures", is_text=True), Column("metric", is_text=True), Column("parameters", is_text=True)]
    rows = []
    for entry in entries:
        parameters = ", ".join(f"{one['name']}={_value(one['default'])}" for one in entry["parameters"])
        rows.append(Row(entry["name"], cells([entry["measures"], entry["metric"], parameters])))
    return [
        Sheet("", "task", heads, rows),
        Sentence("exact: every answer token is the most likely one given those before it."),
        Sentence("contained: share of the references that the generated text contains."),
    ]


def plan_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns what a run would compute."""
    lengths = ", ".join(map(format_length, record["lengths"]))
    keys = ("prompts", "tokens", "distinct_tokens", "most_generated")
    rows = [Row(entry["task"], cells(f"{entry[key]:,}" for key in keys)) for entry in record["plan"]]
    sums = [f"{sum(entry[key] for entry in record['plan']):,}" for key in keys]
    rows.append(Row("all", cells(sums), is_total=True))
    heads = columns(["prompts", "tokens", "computed", "generated at most"])
    sheet = Sheet(f"Lengths {lengths}", "task", heads, rows)
    return [sheet, Sentence("computed: prompts share their beginnings, and each is computed once.")]


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
