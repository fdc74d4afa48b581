"""The view of ``eval-tasks``: scores by task and length, what each task is, and depths of a few tasks."""

from __future__ import annotations

from dataclasses import replace

from ropectl.records import Reach, TaskAverage, TaskLength, TaskResult, TasksReach, TasksRecord
from ropectl.report.document import Cell, Part, Row, Table, View, cells, columns
from ropectl.report.tables.reach import reach_legend
from ropectl.report.tables.words import (
    NONE_MARK,
    NOT_AVAILABLE,
    OPEN_MARK,
    beyond_legend,
    beyond_mark,
    ends_text,
    length_head,
)

#: A terminal shows depths of so many tasks at most: more would bury the scores.
MAX_DEPTH_TABLES = 2

AVERAGE = "average"
SAME_POSITION = "-"


def tasks_parts(record: TasksRecord) -> list[Part]:
    """Returns scores, verdicts, and the depths of a few tasks, with what their marks mean."""
    parts: list[Part] = [_scores(record), _verdicts(record)]
    trained = record.geometry.original_max_position_embeddings
    parts.extend(reach_legend({result.task: _reach(result) for result in record.tasks}, trained))
    with_depths = [result for result in record.tasks if any(entry.depths for entry in result.lengths)]
    is_detail = len(with_depths) > MAX_DEPTH_TABLES
    parts.extend(replace(_depth_table(result), is_detail=is_detail) for result in with_depths)
    return [*parts, *beyond_legend(entry.beyond_capacity for entry in record.average)]


def _scores(record: TasksRecord) -> Table:
    lengths = [entry.length for entry in record.average]
    rows = []
    for result in record.tasks:
        found = {entry.length: entry for entry in result.lengths}
        rows.append(Row(result.task, [_score(found.get(length)) for length in lengths]))
    if len(record.tasks) > 1:
        rows.append(Row(AVERAGE, list(map(_score, record.average)), is_total=True))
    trained = record.geometry.original_max_position_embeddings
    heads = columns(
        f"{length_head(entry.length, trained)}{beyond_mark(entry.beyond_capacity)}" for entry in record.average
    )
    seeds = max((len(entry.seeds) for entry in record.average), default=0)
    spread = f", sd of {seeds} seeds" if seeds else ""
    title = f"Score in %, 95 % interval{spread} (L: trained)"
    about = "Mean score of the trials, in brackets its 95 % interval."
    return Table(title, "task", heads, rows, about=about, has_intervals=True)


def _score(entry: TaskLength | TaskAverage | None) -> Cell:
    if entry is None:
        return Cell(NOT_AVAILABLE)
    ends = ends_text(entry.ci_low, entry.ci_high, _percent)
    spread = "" if entry.seed_spread is None else _percent(entry.seed_spread)
    return Cell(_percent(entry.score), shade=entry.score, value=entry.score, interval=ends, spread=spread)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _verdicts(record: TasksRecord) -> Table:
    rows = []
    for result in record.tasks:
        chance = NONE_MARK if result.chance is None else f"{result.chance:.0e}"
        chance = f"{result.chance:.0%}" if result.chance and result.chance >= 0.01 else chance
        trials = sorted({entry.trials for entry in result.lengths})
        shown = str(trials[0]) if len(trials) == 1 else f"{trials[0]} to {trials[-1]}" if trials else NOT_AVAILABLE
        rows.append(Row(result.task, cells([result.metric, chance, shown, _uses(result)])))
    if len(record.tasks) > 1:
        rows.append(Row(AVERAGE, cells(["", "", "", _uses(record.reach)]), is_total=True))
    wanted = NOT_AVAILABLE if record.reach.used_score is None else f"{record.reach.used_score:.0%}"
    title = f"Uses: at least {wanted} at every length measured from L up to it"
    return Table(title, "task", columns(["metric", "chance", "trials a length", "uses"]), rows)


def _uses(found: TaskResult | TasksReach) -> str:
    if found.uses is None:
        return NOT_AVAILABLE
    is_open = _reach(found).is_open("uses")
    return f"{found.uses or ''}{OPEN_MARK}" if is_open else str(found.uses or NONE_MARK)


def _reach(found: TaskResult | TasksReach) -> Reach:
    return Reach(None, uses=found.uses, uses_possible=found.uses_possible, uses_at=found.uses_at)


def _depth_table(result: TaskResult) -> Table:
    depths = sorted({cell.depth for entry in result.lengths for cell in entry.depths})
    found = [{cell.depth: cell.score for cell in entry.depths} for entry in result.lengths]
    rows = [Row(f"{depth:.0%}", [_depth_cell(scores.get(depth)) for scores in found]) for depth in depths]
    heads = columns(f"{entry.length}{beyond_mark(entry.beyond_capacity)}" for entry in result.lengths)
    return Table(f"{result.task}: score in % by depth", "depth", heads, rows)


def _depth_cell(score: float | None) -> Cell:
    return Cell(SAME_POSITION) if score is None else Cell(f"{100 * score:.0f}", shade=score)


VIEW = View(tasks_parts, "Retrieval tasks on {model}", has_values=True)
