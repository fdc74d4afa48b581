"""What several runs come to, in one table for each thing that they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ropectl.report.best import best_marks
from ropectl.report.layout import beyond_mark
from ropectl.report.page.blocks import Block, Cell, Row, Table, Words
from ropectl.report.page.comparison import picked_row
from ropectl.report.page.finetune import training_words
from ropectl.report.page.numbers import BEYOND, NOTHING, at, number_cell, share_interval
from ropectl.report.page.text import sentences
from ropectl.report.runs_read import Run
from ropectl.report.tables import perplexity_text, row_names
from ropectl.rope.method import short_spec

Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Line:
    """A row of the joint tables.

    Attributes:
        name: Its name.
        href: Its run's section.
        is_pick: Whether its run picked it.
        protocol: What its perplexities were measured with.
        documents: What tells the scored documents, as tokens, from others.
        points: Perplexities.
        passkeys: Retrieval.
        reach: The three lengths.
    """

    name: str
    href: str
    is_pick: bool = False
    protocol: str = ""
    documents: Any = None
    points: Entries = ()
    passkeys: Entries = ()
    reach: Mapping[str, Any] = field(default_factory=dict)


def joint_table(runs: Sequence[Run]) -> list[Block]:
    """Returns perplexity and retrieval of all runs by length; what only one of them measured is in its own section."""
    lines = [line for number, run in enumerate(runs, 1) for line in _lines(run, number)]
    blocks: list[Block] = _measurements(lines)
    if not blocks:
        blocks.append(Words("These runs have no measurement in common; each is shown below."))
    texts = {str(run.record["text"]) for run in runs if "text" in run.record}
    if len(texts) > 1:
        names = ", ".join(sorted(texts))
        blocks.append(
            Words(f"The runs score different texts ({names}): their perplexities are not comparable.", "warning")
        )
    differing = _differing(runs)
    return [_verdicts(runs), *blocks, *([differing] if differing else [])]


def _verdicts(runs: Sequence[Run]) -> Table:
    """What each run comes to."""
    rows = []
    for number, run in enumerate(runs, 1):
        record = run.record
        settings = record["settings"] if run.kind == "run" else record
        picked = picked_row(record) if run.kind == "comparison" else None
        pick = (
            row_names(record["rows"])[picked]
            if picked is not None
            else short_spec(str(settings.get("method") or NOTHING))
        )
        cells = [Cell(str(settings.get("model") or NOTHING)), Cell(pick), Cell(_verdict(run))]
        rows.append(Row(run.name, cells, f"run-{number}-run"))
    return Table("What each run comes to", ["run", "model", "pick, or method", "verdict"], rows, words=(1, 2, 3))


def _verdict(run: Run) -> str:
    """What a run comes to, in whole sentences: what it says itself, why it picks what it picks, or how its training went."""
    if run.kind in ("finetune", "run"):
        return training_words(run.record, run.lines)
    verdict = run.record.get("verdict")
    if verdict:
        return sentences([verdict] if isinstance(verdict, str) else verdict)
    reasons = (run.record.get("pick") or {}).get("reasons")
    return sentences(["; ".join(map(str, reasons))]) if reasons else ""


def _differing(runs: Sequence[Run]) -> Table | None:
    """Settings that are not the same in all runs; those that only one kind of run knows are no difference."""
    settings = [(run.record.get("manifest") or {}).get("config") for run in runs]
    known = [each if isinstance(each, Mapping) else {} for each in settings]
    shared = [name for name in known[0] if all(name in each for each in known)]
    rows = [
        Row(name.replace("_", " "), [Cell(_plain(each[name])) for each in known])
        for name in shared
        if any(each[name] != known[0][name] for each in known)
    ]
    if not rows:
        return None
    columns = ["setting", *(run.name for run in runs)]
    return Table("Settings in which the runs differ", columns, rows, words=tuple(range(1, len(columns))))


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    return NOTHING if value is None else str(value)


def _measurements(lines: Sequence[_Line]) -> list[Block]:
    blocks: list[Block] = []
    protocols = dict.fromkeys(line.protocol for line in lines if line.points)
    for protocol in sorted(protocols, key=lambda each: each != "prefix"):
        caption = "Perplexity" if protocol == "prefix" else f"Perplexity, protocol {protocol}"
        blocks.extend(_perplexity(caption, [line for line in lines if line.points and line.protocol == protocol]))
    own = [line for line in lines if line.passkeys]
    if own:
        blocks.append(_passkeys(own))
    if any(entry["beyond_capacity"] for line in lines for entry in (*line.points, *line.passkeys)):
        blocks.append(Words(BEYOND, "note"))
    own = [line for line in lines if line.reach]
    if own:
        blocks.append(_reach(own))
    return blocks


def _lines(run: Run, number: int) -> Iterator[_Line]:
    record, href = run.record, f"run-{number}-run"
    if run.kind == "comparison":
        picked = picked_row(record)
        for index, (name, row) in enumerate(zip(row_names(record["rows"]), record["rows"], strict=True)):
            yield _Line(
                f"{run.name}: {name}", href, index == picked, "prefix", _documents(record, row), row["perplexity"],
                row["passkey"], row["reach"],
            )  # fmt: skip
    elif run.kind in ("perplexity", "passkey"):
        name = f"{run.name}: {short_spec(record['method'])}"
        points = record["points"] if run.kind == "perplexity" else ()
        entries = record["lengths"] if run.kind == "passkey" else ()
        yield _Line(name, href, False, record.get("protocol", ""), _documents(record, record), points, entries)
    elif run.kind == "inspection":
        yield _Line(f"{run.name}: {short_spec(record['method'])}", href, reach={"computes": record["reach"]})


def _documents(record: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[str, ...]:
    """What is equal where the same documents were read in the same tokens: their hash, or else all that is told of them."""
    own = str(row["model"]) if not record.get("same_tokens", True) else ""
    told = record["manifest"].get("tokens_sha256")
    return (str(told), own) if told else (str(record["model"]), str(record.get("text")), own)


def _perplexity(caption: str, lines: Sequence[_Line]) -> list[Block]:
    """Perplexities by length; the best of a length is marked where all of it was measured on the same documents."""
    lengths = sorted({point["context_length"] for line in lines for point in line.points})
    columns, apart = [], []
    for length in lengths:
        points = [at(line.points, length, "context_length") for line in lines]
        values = [None if point is None else point["perplexity"] for point in points]
        scored = {
            (line.documents, point["num_documents"], point["num_tokens"])
            for line, point in zip(lines, points, strict=True)
            if point is not None and point["perplexity"] is not None
        }
        texts = [perplexity_text(value) for value in values]
        best = best_marks(texts, values, smallest=True) if len(scored) == 1 else [False] * len(lines)
        if len(scored) > 1:
            apart.append(f"{length:,}")
        columns.append(
            [
                number_cell(value, text + _mark(point), "best" if mark else "")
                for value, text, point, mark in zip(values, texts, points, best, strict=True)
            ]
        )
    rows = [
        Row(line.name, [column[index] for column in columns], line.href, line.is_pick)
        for index, line in enumerate(lines)
    ]
    table = Table(caption, ["run", *(f"{length:,}" for length in lengths)], rows, is_sorted_by_reader=True)
    if not apart:
        return [table]
    text = (
        f"No best is marked at {', '.join(apart)}: the runs scored different documents there, or other tokens of them, so "
        f"that these perplexities do not compare ({_counts(lines)})."
    )
    return [table, Words(text, "warning")]


def _counts(lines: Sequence[_Line]) -> str:
    """How many documents each run scored."""
    counts: dict[str, int] = {}
    for line in lines:
        run = line.name.partition(": ")[0]
        counts[run] = max([counts.get(run, 0), *(point["num_documents"] for point in line.points)])
    return "; ".join(f"{run}: {count:,} document{'' if count == 1 else 's'}" for run, count in counts.items())


def _mark(entry: Mapping[str, Any] | None) -> str:
    return beyond_mark(entry is not None and entry["beyond_capacity"])


def _passkeys(lines: Sequence[_Line]) -> Table:
    lengths = sorted({entry["length"] for line in lines for entry in line.passkeys})
    rows = []
    for line in lines:
        found = [at(line.passkeys, length, "length") for length in lengths]
        cells = [
            Cell(NOTHING)
            if entry is None
            else number_cell(
                entry["accuracy"], f"{entry['correct']}/{entry['trials']}{_mark(entry)}", "", share_interval(entry)
            )
            for entry in found
        ]
        rows.append(Row(line.name, cells, line.href, line.is_pick))
    return Table("Passkeys found", ["run", *(f"{length:,}" for length in lengths)], rows, is_sorted_by_reader=True)


def _reach(lines: Sequence[_Line]) -> Table:
    rows = []
    for line in lines:
        cells = []
        for sense in ("computes", "models", "uses"):
            value = line.reach.get(sense)
            unlimited = sense == "computes" and value is None and sense in line.reach
            text = "unlimited" if unlimited else NOTHING if value is None else f"{value:,}" if value else "none"
            cells.append(number_cell(2.0**63 if unlimited else value, text))
        rows.append(Row(line.name, cells, line.href, line.is_pick))
    return Table("Reach [tokens]", ["run", "computes", "models", "uses"], rows, is_sorted_by_reader=True)
