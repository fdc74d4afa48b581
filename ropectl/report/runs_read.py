"""Reading what a report is about: the records in run folders and files, checked, with distinct names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ropectl.compare.document import covers
from ropectl.compare.unfinished import unfinished_comparison
from ropectl.errors import ConfigError
from ropectl.hf.config.sidecar import SIDECAR
from ropectl.output_places import COMPARISON_FILE, PLAN_FILE
from ropectl.records import ComparisonRecord, FinetuneRecord, MetricsLine, PlanRecord, UnfinishedTraining, to_json
from ropectl.records.reading import AnyRecord, read_as, read_record
from ropectl.report.run_files import WANTED, check_version, read_bytes, read_json, read_metrics, read_objects

TUNED_FOLDER, METRICS, RUN, RUN_SUFFIX = "tuned", "metrics.jsonl", "run.json", ".run"

#: A folder of trainings does not hold more; the rest is something else.
_MOST_TRAININGS = 1000


@dataclass(frozen=True)
class Curves:
    """The course of a training.

    Attributes:
        metrics: An entry for each step or validation.
        settings: Its settings by name.
    """

    metrics: Sequence[MetricsLine]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A record and what belongs to it.

    Attributes:
        place: The folder or file that the user named.
        record: The record.
        files: Names and contents of the files that it was read from.
        name: A name that is unique on the page.
        curves: Trainings by id; the one that the record itself is about has the empty id.
    """

    place: Path
    record: AnyRecord
    files: Sequence[tuple[str, bytes]]
    name: str = ""
    curves: Mapping[str, Curves] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder that the files are in."""
        return self.place if self.place.is_dir() else self.place.parent

    @property
    def metrics(self) -> Sequence[MetricsLine]:
        """The metrics of the training that the record is of; empty where there are none."""
        return self.curves[""].metrics if "" in self.curves else ()


def read_runs(places: Sequence[Path]) -> list[Run]:
    """Returns the runs at the given places, each once, in order, with distinct names.

    Raises:
        ConfigError: If one of them holds no record that a report can be made of.
    """
    distinct = {_absolute(place): place for place in places}
    runs = [run for place in distinct.values() for run in _read(place)]
    names = _names(runs)
    return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]


def _absolute(place: Path) -> Path:
    try:
        return place.resolve()
    except (OSError, RuntimeError) as error:  # links that lead to themselves
        raise ConfigError(f"Cannot read {place}: {error}.") from None


def _names(runs: Sequence[Run]) -> list[str]:
    """Returns the last parts of each place, as many as make them distinct, with the method for records of one file."""
    parts = [_absolute(run.place).parts for run in runs]
    count = 1
    distinct = len(set(parts))
    while len({each[-count:] for each in parts}) < distinct:
        count += 1
    named = ["/".join(each[-count:]) for each in parts]
    if distinct == len(runs):
        return named
    return [
        f"{name} ({getattr(run.record, 'method', None) or number})" if named.count(name) > 1 else name
        for number, (name, run) in enumerate(zip(named, runs, strict=True), 1)
    ]


def _read(place: Path) -> list[Run]:
    if place.is_dir():
        return [_folder(place)]
    if not place.exists():
        loops = place.is_symlink()
        raise ConfigError(f"{place} is a link to nothing." if loops else f"{place} does not exist.", WANTED)
    runs = []
    content = read_bytes(place)
    for each in read_objects(place, content):
        record = read_record(each, str(place))
        if isinstance(record, UnfinishedTraining):
            return [_folder(place.parent)]
        curves = _tuned_curves(place.parent) if isinstance(record, ComparisonRecord) else {}
        if isinstance(record, FinetuneRecord):
            curves = _own_curves(place.parent.with_name(place.parent.name + RUN_SUFFIX))
        runs.append(Run(place, record, [(place.name, content)], curves=curves))
    return runs


def _folder(place: Path) -> Run:
    """Reads the run folder of a comparison or a training, or a tuned checkpoint."""
    for name in (COMPARISON_FILE, PLAN_FILE, SIDECAR, RUN):
        _check_file(place / name)
    plan = read_plan(place)
    if plan is not None or (place / COMPARISON_FILE).is_file():
        return _comparison(place, plan)
    if (place / SIDECAR).is_file():
        return replace(_read(place / SIDECAR)[0], place=place)
    if (place / RUN).is_file():
        whole = _absolute(place)
        finished = whole.with_name(whole.name.removesuffix(RUN_SUFFIX)) / SIDECAR
        if whole.name.endswith(RUN_SUFFIX) and finished.is_file() and "training" in read_objects(finished)[0]:
            return replace(_read(finished)[0], place=place)
        return _training(place)
    found = ", ".join(sorted(path.name for path in place.iterdir())[:5])
    lacks = f"it has neither {COMPARISON_FILE} nor {PLAN_FILE} nor {RUN}, but {found}" if found else "it is empty"
    raise ConfigError(f"{place} is not a run folder: {lacks}.", WANTED)


def _check_file(path: Path) -> None:
    """Refuses what has the name of a record but is not a file."""
    if path.is_file() or not (path.exists() or path.is_symlink()):
        return
    kind = "a folder" if path.is_dir() else "not an ordinary file" if path.exists() else "a link that leads to no file"
    raise ConfigError(f"{path} is {kind}; a record of that name is a file.", WANTED)


def read_plan(place: Path) -> PlanRecord | None:
    """Returns the plan of a run folder; None if there is none.

    Raises:
        ConfigError: If it cannot be read.
    """
    path, hint = place / PLAN_FILE, "The command that began the run writes it again."
    if not path.is_file():
        return None
    plan = read_json(path, hint)
    if not isinstance(plan, dict):
        raise ConfigError(f"{path} is not a plan of a comparison.", hint)
    check_version(plan, path)
    return read_as(PlanRecord, plan, str(path), PlanRecord.written_by)


def _comparison(place: Path, plan: PlanRecord | None) -> Run:
    path = place / COMPARISON_FILE
    run = replace(_read(path)[0], place=place) if path.is_file() else None
    if run is not None and (plan is None or (isinstance(run.record, ComparisonRecord) and covers(run.record, plan))):
        return run
    assert plan is not None, "one of the two is there"
    record = unfinished_comparison(place, plan)
    if run is not None and record.unfinished is not None and not record.unfinished.missing:
        return run  # asked for after all that was planned was measured: a part of it
    content = json.dumps(to_json(record), indent=2).encode()
    return Run(place, record, [("comparison-unfinished.json", content)], curves=_tuned_curves(place))


def _training(place: Path) -> Run:
    files = [(name, read_bytes(place / name)) for name in (RUN, METRICS) if (place / name).is_file()]
    return Run(place, _unfinished_training(place / RUN), files, curves=_own_curves(place))


def _unfinished_training(path: Path) -> UnfinishedTraining:
    return read_as(UnfinishedTraining, read_json(path), str(path), UnfinishedTraining.written_by)


def _own_curves(place: Path) -> dict[str, Curves]:
    found = _curves(place)
    return {"": found} if found else {}


def _tuned_curves(folder: Path) -> dict[str, Curves]:
    """Returns the trainings of a comparison by the first digits of their ids, which are part of their folders' names."""
    places = sorted((folder / TUNED_FOLDER).glob("*"))[:_MOST_TRAININGS]
    found = {place.name.rpartition("-")[2]: _curves(place / f"model{RUN_SUFFIX}") for place in places}
    return {name: curves for name, curves in found.items() if curves}


def _curves(place: Path) -> Curves | None:
    metrics = read_metrics(place / METRICS)
    if not metrics:
        return None
    return Curves(metrics, _unfinished_training(place / RUN).settings if (place / RUN).is_file() else {})
