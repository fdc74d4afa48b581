"""A limit of time, by a clock of the test: what is measured, what is left out, and how it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ropectl.compare import budget as budget_module
from ropectl.compare import measure
from ropectl.compare.budget import Budget, LeftOut, in_order
from ropectl.compare.cells import ComparisonCell
from ropectl.compare.dry_run import estimate_comparison
from ropectl.compare.run import compare_methods
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.cost import ForwardCost
from ropectl.reporter import Reporter
from ropectl.timing.operations import Cost
from ropectl.timing.pace import Pace
from ropectl.timing.speed import Span
from tests.distributed import run_ranks

from .test_compare import without_times

Run = Callable[..., tuple[int, str, str]]


def cell(method: str, kind: str, cost: float, length: int = 512) -> ComparisonCell:
    return ComparisonCell(method, kind, [length], {}, 1, Cost(weights=cost), 1, 1, lambda *_: [])


def named(entries: list[tuple[int, ComparisonCell]]) -> list[str]:
    return [f"{number} {cell.method} {cell.kind}" for number, cell in entries]


def test_the_reference_comes_first_and_then_every_row_in_turn() -> None:
    costs = {"passkey": 9.0, "prefix": 2.0, "tail": 3.0}
    table = [(number, cell(m, k, c)) for number in (0, 1) for m in ("none", "pi", "yarn") for k, c in costs.items()]
    ordered = named(in_order(table, by_model=False))
    assert ordered[:3] == ["0 none prefix", "0 none tail", "0 none passkey"]
    prefix, tail, passkey = ordered[3:8], ordered[8:13], ordered[13:]
    assert prefix == ["0 pi prefix", "0 yarn prefix", "1 none prefix", "1 pi prefix", "1 yarn prefix"]
    assert tail == [each.replace("prefix", "tail") for each in prefix]
    assert passkey == [each.replace("prefix", "passkey") for each in prefix]
    models = [entry[0] for entry in in_order(table, by_model=True)]
    assert models == sorted(models), "weights load once"


def test_shorter_cells_of_a_kind_come_first() -> None:
    table = [(0, cell("dynamic-ntk", "passkey", n, n)) for n in (512, 128)] + [(0, cell("pi", "passkey", 700, 512))]
    assert [(e.method, e.length) for _, e in in_order(table, False)] == [
        ("dynamic-ntk", 128), ("dynamic-ntk", 512), ("pi", 512)
    ]  # fmt: skip


def test_a_cell_is_begun_if_it_is_expected_to_end_in_time() -> None:
    limit = Budget(60.0, 100.0, lambda: 130.0)
    assert limit.allows(None) and limit.allows(Span(10, 30, 90)) and not limit.allows(Span(1, 30.1, 31))


def test_what_is_left_out_is_said() -> None:
    cells = [
        cell("pi:factor=2", "tail", 1),
        *(cell(f"ntk:factor={n}", "passkey", 1, k) for n in range(2, 7) for k in (1, 2)),
    ]
    assert LeftOut(cells, 27, Span(480, 600, 720)).sentence == (
        "11 of 27 cells are left out: tail of pi:factor=2; passkey of 5 methods, 8 to 12 min more."
    )
    tuned = replace(cells[0], training="x")
    assert LeftOut([tuned], 3, None).sentence == "1 of 3 cells are left out: tail of pi:factor=2, tuned."


class Clock:
    """Goes on with what passes cost, and with nothing else."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made, reported = Clock(), ForwardCost.reported

    def timed(self: ForwardCost, advance: Callable[[int, Cost], None]) -> Any:
        def slowly(tokens: int, cost: Cost) -> None:
            made.now += 1e-9 * cost.total + 1e-3 * cost.passes
            advance(tokens, cost)

        return reported(self, slowly)

    monkeypatch.setattr(ForwardCost, "reported", timed)
    monkeypatch.setattr(measure, "Pace", lambda total: Pace(total, made))
    monkeypatch.setattr(budget_module, "Budget", lambda seconds, began: Budget(seconds, made.now, made))
    return made


@pytest.fixture
def config(checkpoint: Callable[..., Path]) -> CompareConfig:
    return CompareConfig(
        model=str(checkpoint()),
        methods=("pi", "dynamic-ntk"),
        factor=4,
        lengths=(128, 256),
        documents=2,
        trials=2,
        depths=2,
    )


def cells_of(run: Path) -> dict[str, Any]:
    return {path.name: without_times(json.loads(path.read_text())) for path in sorted((run / "cells").glob("*.json"))}


@pytest.mark.process
def test_it_stops_in_time_goes_on_and_ends_with_the_same_records(
    config: CompareConfig, tmp_path: Path, clock: Clock
) -> None:
    whole = compare_methods(config, tmp_path / "whole")
    took, number = clock.now, len(whole.record["manifest"]["cells"])
    limit, folder, counts = took / 3, tmp_path / "run", [0]
    for _ in range(10):
        reporter, began = Reporter(), clock.now
        done = compare_methods(config, folder, reporter, budget=limit)
        counts.append(len(cells_of(folder)))
        assert clock.now - began <= limit, "the clock knows no noise, so what is expected comes true"
        if not done.is_unfinished:
            break
        left = number - counts[-1]
        assert done.record["unfinished"]["missing"] == left and done.record["pick"] is None
        assert not (folder / "comparison.json").exists()
        [note] = [note for note in reporter.notes if note.startswith("--budget")]
        assert f"{left} of {number} cells are left out" in note and " more." in note and "same command" in note
    assert 2 < len(counts) <= 5 and counts == sorted(set(counts)), "several parts, each with something"
    assert cells_of(folder) == cells_of(tmp_path / "whole")
    assert without_times(done.record) == without_times(whole.record)
    assert not list(folder.glob("comparison-*.json")), "a budget is no other comparison"


@pytest.mark.process
def test_the_first_cell_is_always_measured(config: CompareConfig, tmp_path: Path, clock: Clock) -> None:
    done = compare_methods(config, tmp_path / "run", budget=1e-9)
    assert done.is_unfinished and len(cells_of(tmp_path / "run")) == 1
    rows = {row["method"]: any(row[kind] for kind in ("perplexity", "tail", "passkey")) for row in done.record["rows"]}
    assert rows == {"none": True, "pi:factor=4": False, "dynamic-ntk": False}


@pytest.mark.process
def test_a_person_sees_a_table_and_no_failure(
    ropectl: Run, config: CompareConfig, tmp_path: Path, clock: Clock
) -> None:
    arguments = ["compare-methods", config.model, "-m", "pi", "--factor", "4", "--documents", "2", "--no-passkey"]
    arguments += ["-o", str(tmp_path / "run")]
    gate = ["--fail-above", "1.01"]
    code, out, err = ropectl(*arguments, *gate, "--budget", "0.001s")
    assert code == 0 and "Unfinished: 3 of 4 cells" in out and "--budget 0.0 s: 3 of 4 cells are left out" in err
    code, out, _ = ropectl("report", str(tmp_path / "run"))
    assert code == 0
    code, out, err = ropectl(*arguments, *gate)
    assert code == 3 and "Unfinished" not in out and "1 of 4 cells are already" in err


@pytest.mark.process
def test_every_process_keeps_to_it(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """Each measures its first cell; without a budget both measure the rest."""
    options = ["--factor", "4", "--length", "128,256", "--documents", "2", "--trials", "2", "--depths", "2"]
    command = ["-m", "ropectl", "compare-methods", str(checkpoint()), "-m", "pi", *options]
    shared = [*command, "-o", str(tmp_path / "shared")]
    output = run_ranks([*shared, "--budget", "0.001s"], 2)
    assert len(cells_of(tmp_path / "shared")) == 2 and "4 of 6 cells are left out" in "".join(map(str, output))
    run_ranks(shared, 2)
    run_ranks([*command, "-o", str(tmp_path / "alone")], 1)
    assert cells_of(tmp_path / "shared") == cells_of(tmp_path / "alone")


def test_trainings_have_no_budget(config: CompareConfig, tmp_path: Path) -> None:
    trained = config.model_copy(update={"finetune": tmp_path / "recipe.yaml"})
    for run in (compare_methods, estimate_comparison):
        with pytest.raises(ConfigError, match="--budget is for measurements"):
            run(trained, tmp_path / "run", budget=60.0)


@pytest.mark.parametrize("value", ["10", "soon", "0m", "-5m"])
def test_what_is_no_time_is_refused(ropectl: Run, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ropectl("compare-methods", "--budget", value, "-o", "run")
    assert code == 2 and out == "" and "--budget" in err and "10m" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
@pytest.mark.usefixtures("short_calibration")
def test_a_dry_run_says_what_would_fit(config: CompareConfig, ropectl: Run) -> None:
    assert estimate_comparison(config, budget=1e8)["budget"]["left_out"] == 0
    least = estimate_comparison(config, budget=1e-9)["budget"]
    assert least["left_out"] == least["cells"] - 1 and "left out" in least["sentence"]
    half = estimate_comparison(config)
    assert half["budget"] is None
    seconds = half["models"][0]["time"]["seconds"]
    some = estimate_comparison(config, budget=seconds / 2)["budget"]
    assert 0 < some["left_out"] < some["cells"] - 1
    arguments = ["compare-methods", config.model, "-m", "pi", "--factor", "4", "--documents", "2", "--dry-run"]
    code, out, _ = ropectl(*arguments, "--budget", "1h")
    assert code == 0 and "--budget 1 h 00 min: all 6 cells fit." in out
