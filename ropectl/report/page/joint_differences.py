"""Several runs of one method each, in pairs: the same documents or the same prompts under each, against the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ropectl.evaluate.judging.paired import loss_difference, score_difference
from ropectl.lengths import format_length
from ropectl.records import Difference, PasskeyRecord, PerplexityRecord, TaskLength, TasksRecord
from ropectl.report.blocks import Block
from ropectl.report.document import NOTE, Cell, Row, Table, columns
from ropectl.report.runs_read import Run
from ropectl.report.tables.differences import EXPLAINED, difference_cell
from ropectl.report.tables.words import NOT_AVAILABLE, beyond_mark

#: Returns the difference of two runs at a length [tokens]; None where they have no pairs there.
Pairing = Callable[[Run, Run, int], Difference | None]


def joint_differences(runs: Sequence[Run]) -> list[Block]:
    """Returns the paired differences of single runs from the first of their kind; empty where there are no pairs."""
    tables = [*_losses(runs), *_passkeys(runs), *_tasks(runs)]
    return [*tables, replace(EXPLAINED, tone=NOTE)] if tables else []


def _losses(runs: Sequence[Run]) -> Iterator[Table]:
    own = [run for run in runs if isinstance(run.record, PerplexityRecord) and run.record.manifest.tokens_sha256]
    for key in dict.fromkeys(map(_scored, own)):
        group = [run for run in own if _scored(run) == key]
        lengths = sorted({point.context_length for run in group for point in run.record.points})  # type: ignore[union-attr]
        yield from _table(
            f"Loss against {group[0].name}, in pairs, protocol {key[0]} [nats a token]", group, lengths, _loss
        )


def _scored(run: Run) -> tuple[str, str | None]:
    """Returns what is equal for runs that scored the same tokens in the same way."""
    record = run.record
    assert isinstance(record, PerplexityRecord)
    return record.protocol, record.manifest.tokens_sha256


def _loss(first: Run, second: Run, length: int) -> Difference | None:
    ours, theirs = first.record, second.record
    assert isinstance(ours, PerplexityRecord) and isinstance(theirs, PerplexityRecord)
    found = [next((p for p in record.points if p.context_length == length), None) for record in (ours, theirs)]
    if found[0] is None or found[1] is None:
        return None
    return loss_difference(ours.protocol, found[0], found[1], ours.manifest.clusters or None)


def _passkeys(runs: Sequence[Run]) -> Iterator[Table]:
    own = [run for run in runs if isinstance(run.record, PasskeyRecord) and run.record.manifest.prompts_sha256]

    def prompts(run: Run) -> str | None:
        assert isinstance(run.record, PasskeyRecord)
        return run.record.manifest.prompts_sha256

    def answers(first: Run, second: Run, length: int) -> Difference | None:
        ours, theirs = first.record, second.record
        assert isinstance(ours, PasskeyRecord) and isinstance(theirs, PasskeyRecord)
        found = [next((e.outcomes() for e in record.lengths if e.length == length), {}) for record in (ours, theirs)]
        return score_difference("passkey", length, found[0], found[1])

    for key in dict.fromkeys(map(prompts, own)):
        group = [run for run in own if prompts(run) == key]
        lengths = sorted({entry.length for run in group for entry in run.record.lengths})  # type: ignore[union-attr]
        yield from _table(f"Passkeys against {group[0].name}, in pairs [% of the prompts]", group, lengths, answers)


def _tasks(runs: Sequence[Run]) -> Iterator[Table]:
    """Yields the scores of each task that several runs measured on the same prompts, and their differences."""
    results = [(run, task) for run in runs if isinstance(run.record, TasksRecord) for task in run.record.tasks]
    for name, prompts in dict.fromkeys((task.task, task.prompts_sha256) for _, task in results):
        group = {id(run): (run, task) for run, task in results if (task.task, task.prompts_sha256) == (name, prompts)}
        if len(group) < 2:
            continue
        entries = {key: {entry.length: entry for entry in task.lengths} for key, (_, task) in group.items()}
        lengths = sorted({length for own in entries.values() for length in own})
        own = [run for run, _ in group.values()]
        rows = [Row(run.name, [_score(entries[id(run)].get(length)) for length in lengths]) for run in own]
        yield Table(f"{name}: score in %", "run", columns(map(format_length, lengths)), rows)

        def scores(
            first: Run, second: Run, length: int, entries: dict[int, dict[int, TaskLength]] = entries
        ) -> Difference | None:
            found = [entries[id(run)].get(length) for run in (first, second)]
            both = [{} if entry is None else {(0.0, n): s for n, s in enumerate(entry.scores)} for entry in found]
            return score_difference("task", length, both[0], both[1])

        yield from _table(f"{name}: score against {own[0].name}, in pairs [%]", own, lengths, scores)


def _score(entry: TaskLength | None) -> Cell:
    if entry is None:
        return Cell(NOT_AVAILABLE)
    interval = f"{100 * entry.ci_low:.0f}\u2013{100 * entry.ci_high:.0f}%"
    return Cell(
        f"{100 * entry.score:.0f}",
        beyond_mark(entry.beyond_capacity),
        shade=entry.score,
        value=entry.score,
        small=interval,
    )


def _table(title: str, runs: Sequence[Run], lengths: Sequence[int], pairing: Pairing) -> Iterator[Table]:
    """Yields a table of the differences of all runs from the first, if there is a pair."""
    found = [[pairing(run, runs[0], length) for length in lengths] for run in runs[1:]]
    if any(one is not None for row in found for one in row):
        rows = [Row(run.name, list(map(difference_cell, row))) for run, row in zip(runs[1:], found, strict=True)]
        yield Table(title, "run", columns(map(format_length, lengths)), rows)
