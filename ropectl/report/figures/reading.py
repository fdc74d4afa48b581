"""What figures read from records: numbers that can be drawn, by subject. Whatever a record lacks is left out.

Records are files: old ones lack keys, and one may hold anything. Nothing here raises for what a record holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ropectl.errors import ConfigError
from ropectl.report.figures.subjects import PREFIX, TAIL, Cell, Cost, Evidence, Point, Subject
from ropectl.report.tables import row_names
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import short_spec

#: No context is longer [tokens]; a larger number is damage.
MAX_LENGTH = 10**9

#: Where a record has more rows, figures show the first ones.
MAX_SUBJECTS = 40

#: A larger number would overflow on its way to an axis.
MAX_NUMBER = 1e100

_BITS = "bits_per_byte"


def number(value: Any) -> float | None:
    """Returns a finite number that can be drawn, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MAX_NUMBER else None


def length_of(value: Any) -> int | None:
    """Returns a length [tokens], or None."""
    whole = number(value)
    return int(whole) if whole is not None and 1 <= whole <= MAX_LENGTH and whole == int(whole) else None


def mapping(value: Any) -> Mapping[str, Any]:
    """Returns a mapping as it is, and anything else as an empty one."""
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """Returns the mappings of a list; nothing where there is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def text(value: Any) -> str:
    """Returns a text; nothing where there is none."""
    return value if isinstance(value, str) else ""


def trained_length(record: Mapping[str, Any]) -> int | None:
    """Returns L [tokens] of a record's geometry."""
    return length_of(mapping(record.get("geometry")).get("original_max_position_embeddings"))


def points(items: Any, value: str, length: str, samples: str, positive: bool) -> list[Point]:
    """Returns the drawable points of a list of records, one a length, in order of length.

    Args:
        items: The records.
        value: Key of what was measured; its interval is read where the record has one and it holds the value.
        length: Key of the length.
        samples: Key of the number of documents or trials.
        positive: Whether values must be above 0, for a logarithmic axis; else they are shares, in [0, 1].
    """
    found: dict[int, Point] = {}
    for item in entries(items):
        place, height = length_of(item.get(length)), number(item.get(value))
        if place is None or height is None or (height <= 0 if positive else not 0 <= height <= 1):
            continue
        low, high = number(item.get("ci_low")), number(item.get("ci_high"))
        if low is None or high is None or not (0 if positive else -1) < low <= height <= high or value == _BITS:
            low = high = None
        count = length_of(item.get(samples)) or 0
        found[place] = Point(place, height, low, high, item.get("beyond_capacity") is True, count)
    return [found[place] for place in sorted(found)]


def subjects_of(record: Mapping[str, Any]) -> list[Subject]:
    """Returns what a record of any kind is about: rows of a comparison, or the model of an evaluation."""
    trained = trained_length(record)
    if "rows" in record:
        rows = [row for row in entries(record["rows"]) if text(row.get("method"))][:MAX_SUBJECTS]
        names = _row_names(rows)
        return [replace(_row(row), name=name, trained_length=trained) for row, name in zip(rows, names, strict=True)]
    method = text(record.get("method")) or "none"
    subject = Subject(short_spec(method), method, method, trained_length=trained)
    if "points" in record:
        return [*_unscaled(record, trained), _measured(subject, record)]
    if isinstance(record.get("tasks"), list | tuple):
        return [replace(subject, tasks=_tasks(record["tasks"]))]
    return [replace(subject, **_passkeys(record.get("lengths"), text(record.get("grid"))))]


def subjects_of_runs(records: Mapping[str, Mapping[str, Any]]) -> list[Subject]:
    """Returns what several records are about, each called after its run."""
    subjects: list[Subject] = []
    for run, record in records.items():
        of_run = subjects_of(mapping(record))
        if "points" in record:  # its unscaled model would stand there once a run
            of_run = of_run[-1:]
        for subject in of_run:
            named = f"{run}: {subject.name}"
            subjects.append(replace(subject, name=named, family=f"{run}\0{subject.family}"))
    return subjects[:MAX_SUBJECTS]


def unique(names: Iterable[str]) -> list[str]:
    """Returns names of which no two are equal: repeated ones are counted."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return result


def _row_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    plain = [
        {"model": text(row.get("model")), "method": row["method"], "training": bool(row.get("training"))}
        for row in rows
    ]
    return unique(row_names(plain)) if plain else []


def _row(row: Mapping[str, Any]) -> Subject:
    training = mapping(row.get("training"))
    curves = {PREFIX: row.get("perplexity"), TAIL: row.get("tail")}
    counts = {key: number(training.get(key)) for key in ("tokens", "seconds")}
    return Subject(
        name="",
        method=row["method"],
        family=f"{text(row.get('model'))}\0{row['method']}",
        tuned=bool(row.get("training")),
        perplexity={key: _perplexity(value) for key, value in curves.items()},
        bits={key: _bits(value) for key, value in curves.items()},
        **_nll(row.get("perplexity")),
        cost=Cost(
            short_delta=number(row.get("short_delta")), uses=number(mapping(row.get("reach")).get("uses")), **counts
        ),
        **_passkeys(row.get("passkey"), "depth"),
    )


def _perplexity(items: Any) -> list[Point]:
    return points(items, "perplexity", "context_length", "num_documents", positive=True)


def _bits(items: Any) -> list[Point]:
    return points(items, _BITS, "context_length", "num_documents", positive=True)


def _measured(subject: Subject, record: Mapping[str, Any]) -> Subject:
    protocol, items = text(record.get("protocol")) or PREFIX, record.get("points")
    return replace(
        subject,
        perplexity={protocol: _perplexity(items)},
        bits={protocol: _bits(items)},
        **_nll(items),
        cost=Cost(short_delta=number(record.get("short_delta"))),
    )


def _unscaled(record: Mapping[str, Any], trained: int | None) -> Iterator[Subject]:
    """The unscaled model, which ``eval-perplexity`` measures up to the trained length."""
    protocol, found = text(record.get("protocol")) or PREFIX, _perplexity(record.get("unscaled"))
    if found and text(record.get("method")) != "none":
        bits = {protocol: _bits(record.get("unscaled"))}
        yield Subject("none", "none", "none", trained_length=trained, perplexity={protocol: found}, bits=bits)


def _nll(items: Any) -> dict[str, Any]:
    """Mean losses at the geometric middle of each bin of positions, of the longest context that has them."""
    having = {length_of(item.get("context_length")) or 0: entries(item.get("positions")) for item in entries(items)}
    window = max((length for length, parts in having.items() if length and parts), default=0)
    found = []
    for part in having.get(window, ()):
        start, end = length_of(part.get("start")), length_of(part.get("end"))
        total, count = number(part.get("nll_sum")), length_of(part.get("num_tokens"))
        if start and end and total is not None and count and start < end:
            found.append((math.sqrt(start * (end - 1)), total / count))
    return {"nll": sorted(found), "window": window}


def _passkeys(items: Any, grid: str) -> dict[str, Any]:
    grid = "position" if grid == "position" else "depth"
    cells: dict[tuple[int, float], Cell] = {}
    for item in entries(items):
        length = length_of(item.get("length"))
        for cell in entries(item.get("depths")) if length else ():
            place = number(cell.get("depth" if grid == "depth" else "needle_position"))
            share = number(cell.get("accuracy"))
            if length and place is not None and share is not None and 0 <= share <= 1 and 0 <= place <= MAX_LENGTH:
                cells[length, place] = Cell(length, place, share)
    shares = points(items, "accuracy", "length", "trials", positive=False)
    return {"passkey": shares, "cells": [cells[key] for key in sorted(cells)], "grid": grid}


def _tasks(items: Any) -> dict[str, list[Point]]:
    found = {
        text(item.get("task")): points(item.get("lengths"), "score", "length", "trials", positive=False)
        for item in entries(items)[:MAX_SUBJECTS]
    }
    return {name: curve for name, curve in found.items() if name and curve}


def evidence_of(record: Mapping[str, Any]) -> Evidence:
    """Returns what the figures of one record are drawn from."""
    record = mapping(record)
    same = record.get("same_tokens") is not False
    remarks = () if same else ("The models read the text in different tokens; bits per byte can be compared.",)
    return Evidence(subjects_of(record), same, remarks, _geometry(record), _target(record))


def evidence_of_runs(records: Mapping[str, Mapping[str, Any]]) -> Evidence:
    """Returns what the figures of several records are drawn from; what keeps their numbers from comparing is said."""
    runs = {text(name) or "run": mapping(record) for name, record in records.items()}
    models = {model for record in runs.values() if (model := text(record.get("model")))}
    texts = {value for r in runs.values() if (value := text(mapping(r.get("manifest")).get("tokens_sha256")))}
    same = len(models) <= 1 and all(record.get("same_tokens") is not False for record in runs.values())
    remarks = []
    if not same:
        remarks.append("The models may read text in different tokens; bits per byte can be compared.")
    if len(texts) > 1:
        remarks.append("The runs read different text: levels do not compare, shapes do.")
    return Evidence(subjects_of_runs(runs), same, remarks)


def _geometry(record: Mapping[str, Any]) -> RopeGeometry | None:
    given = mapping(record.get("geometry"))
    dim, theta = length_of(given.get("rotary_dim")), number(given.get("rope_theta"))
    trained, turning = trained_length(record), given.get("num_turning")
    if dim is None or theta is None or trained is None or not (turning is None or length_of(turning)):
        return None
    try:
        return RopeGeometry(dim, theta, trained, length_of(turning))
    except ConfigError:
        return None


def _target(record: Mapping[str, Any]) -> int | None:
    """L' as recorded; of an older record what its factor comes to, else the longest length measured."""
    wanted, factor, trained = (
        length_of(record.get("target_length")),
        number(record.get("factor")),
        trained_length(record),
    )
    if factor is None:
        factor = number(mapping(mapping(record.get("manifest")).get("config")).get("factor"))
    if wanted is None and factor is not None and trained is not None:
        wanted = length_of(round(factor * trained))
    given = record.get("lengths")
    lengths = [found for item in given if (found := length_of(item))] if isinstance(given, list | tuple) else []
    return wanted or max(lengths, default=None)
