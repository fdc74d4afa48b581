"""What several runs come to, in one table for each thing that they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ropectl.report.page.blocks import Block, Cell, Row, Table, Words
from ropectl.report.page.comparison import picked_row
from ropectl.report.page.numbers import NOTHING, at, best_of, number_cell, share_interval
from ropectl.report.runs_read import Run
from ropectl.report.tables import perplexity_text, row_names
from ropectl.rope.method import short_spec

#: A row of the joint tables: its name, its run's section, whether its run picked it, points, retrieval and reach.
_Line = tuple[str, str, bool, str, Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]], Mapping[str, Any]]


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
        verdict = record.get("verdict") or (record.get("pick") or {}).get("reasons") or ""
        text = verdict if isinstance(verdict, str) else "; ".join(map(str, verdict))
        picked = picked_row(record) if run.kind == "comparison" else None
        pick = (
            row_names(record["rows"])[picked]
            if picked is not None
            else short_spec(str(record.get("method") or NOTHING))
        )
        rows.append(
            Row(run.name, [Cell(str(record.get("model") or NOTHING)), Cell(pick), Cell(text)], f"run-{number}-run")
        )
    return Table("What each run comes to", ["run", "model", "pick, or method", "verdict"], rows, words=(1, 2, 3))


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
    for text, protocol in (("Perplexity", "prefix"), ("Perplexity, protocol {}", None)):
        kinds = dict.fromkeys(line[3] for line in lines if line[4])
        for kind in [protocol] if protocol else [kind for kind in kinds if kind != "prefix"]:
            own = [line for line in lines if line[4] and line[3] == kind]
            if own:
                blocks.append(_perplexity(text.format(kind), own))
    own = [line for line in lines if line[5]]
    if own:
        blocks.append(_passkeys(own))
    own = [line for line in lines if line[6]]
    if own:
        blocks.append(_reach(own))
    return blocks


def _lines(run: Run, number: int) -> Iterator[_Line]:
    record, href = run.record, f"run-{number}-run"
    if run.kind == "comparison":
        picked = picked_row(record)
        for index, (name, row) in enumerate(zip(row_names(record["rows"]), record["rows"], strict=True)):
            reach = row["reach"]
            yield (f"{run.name}: {name}", href, index == picked, "prefix", row["perplexity"], row["passkey"], reach)
    elif run.kind in ("perplexity", "passkey"):
        name = f"{run.name}: {short_spec(record['method'])}"
        points = record["points"] if run.kind == "perplexity" else ()
        entries = record["lengths"] if run.kind == "passkey" else ()
        yield (name, href, False, record.get("protocol", ""), points, entries, {})
    elif run.kind == "inspection":
        yield (f"{run.name}: {short_spec(record['method'])}", href, False, "", (), (), {"computes": record["reach"]})


def _perplexity(caption: str, lines: Sequence[_Line]) -> Table:
    lengths = sorted({point["context_length"] for line in lines for point in line[4]})
    rows = []
    for name, href, is_pick, _, points, _, _ in lines:
        cells = []
        for length in lengths:
            value = _value(points, length)
            best = best_of((_value(line[4], length) for line in lines), smallest=True)
            cells.append(
                number_cell(value, perplexity_text(value), "best" if value is not None and value == best else "")
            )
        rows.append(Row(name, cells, href, is_pick))
    return Table(caption, ["run", *(f"{length:,}" for length in lengths)], rows, is_sorted_by_reader=True)


def _value(points: Sequence[Mapping[str, Any]], length: int) -> float | None:
    point = at(points, length, "context_length")
    return None if point is None else point["perplexity"]


def _passkeys(lines: Sequence[_Line]) -> Table:
    lengths = sorted({entry["length"] for line in lines for entry in line[5]})
    rows = []
    for name, href, is_pick, _, _, entries, _ in lines:
        found = [at(entries, length, "length") for length in lengths]
        cells = [
            Cell(NOTHING)
            if entry is None
            else number_cell(entry["accuracy"], f"{entry['correct']}/{entry['trials']}", "", share_interval(entry))
            for entry in found
        ]
        rows.append(Row(name, cells, href, is_pick))
    return Table("Passkeys found", ["run", *(f"{length:,}" for length in lengths)], rows, is_sorted_by_reader=True)


def _reach(lines: Sequence[_Line]) -> Table:
    rows = []
    for name, href, is_pick, _, _, _, reach in lines:
        cells = []
        for sense in ("computes", "models", "uses"):
            value = reach.get(sense)
            unlimited = sense == "computes" and value is None and sense in reach
            text = "unlimited" if unlimited else NOTHING if value is None else f"{value:,}" if value else "none"
            cells.append(number_cell(2.0**63 if unlimited else value, text))
        rows.append(Row(name, cells, href, is_pick))
    return Table("Reach [tokens]", ["run", "computes", "models", "uses"], rows, is_sorted_by_reader=True)
