"""``--seeds K``: the prompts of K seeds as one number with its spread."""

from __future__ import annotations

from pathlib import Path
from statistics import stdev

import pytest

from ropectl.compare.run import compare_methods
from ropectl.evaluate.config import CompareConfig, PasskeyConfig
from ropectl.evaluate.judging.statistics import wilson_interval
from ropectl.evaluate.retrieval.passkey_evaluation import evaluate_passkey
from ropectl.evaluate.retrieval.task_evaluation import evaluate_tasks
from ropectl.evaluate.tasks_config import TasksConfig

pytestmark = pytest.mark.process


def test_passkeys_of_several_seeds_are_those_of_each() -> None:
    """Ends past what the model retrieves, where seeds differ."""
    settings = {"lengths": (640, 1024), "depths": 3, "trials": 2}
    single = [evaluate_passkey(PasskeyConfig(seed=seed, **settings)) for seed in (3, 4, 5)]
    pooled = evaluate_passkey(PasskeyConfig(seed=3, seeds=3, **settings))
    for number, entry in enumerate(pooled["lengths"]):
        own = [record["lengths"][number] for record in single]
        assert entry["correct"] == sum(one["correct"] for one in own) and entry["trials"] == 18
        assert (entry["ci_low"], entry["ci_high"]) == wilson_interval(entry["correct"], 18)
        assert entry["seeds"] == [
            {"seed": seed, "score": pytest.approx(one["accuracy"]), "trials": 6}
            for seed, one in zip((3, 4, 5), own, strict=True)
        ]
        assert entry["seed_spread"] == pytest.approx(stdev(one["accuracy"] for one in own))
        for cell, parts in zip(entry["depths"], zip(*(one["depths"] for one in own), strict=True), strict=True):
            assert cell["outcomes"] == [outcome for part in parts for outcome in part["outcomes"]]
    assert all(record["lengths"][0]["seeds"] == [] and record["lengths"][0]["seed_spread"] is None for record in single)


def test_more_seeds_measure_only_what_is_new(tmp_path: Path) -> None:
    """A cell is one seed's: the first is not measured again, and a comparison shows all as one number."""
    config = CompareConfig(methods=("ntk",), factor=4, lengths=(512, 1024), documents=2, depths=3, trials=2)
    compare_methods(config, tmp_path / "run")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run" / "cells").iterdir()}
    more = compare_methods(config.model_copy(update={"seeds": 2}), tmp_path / "run").record
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run" / "cells").iterdir()}
    assert before.items() < after.items() and len(after) == len(before) + 2, "one more cell of passkeys for each row"
    alone = evaluate_passkey(PasskeyConfig(method="ntk:factor=4", lengths=(512, 1024), depths=3, trials=2, seeds=2))
    assert more["rows"][1]["passkey"] == alone["lengths"]
    assert [one["units"] for one in more["differences"] if one["measure"] == "passkey"] == [12] * 2 * len(
        {one["against"] for one in more["differences"]}
    )


def test_tasks_of_several_seeds_are_those_of_each() -> None:
    settings = {"tasks": ("passkey", "common-words"), "lengths": (512,), "depths": 2, "trials": 1}
    single = [evaluate_tasks(TasksConfig(seed=seed, **settings)) for seed in (0, 1)]
    pooled = evaluate_tasks(TasksConfig(seeds=2, **settings))
    for number, task in enumerate(pooled["tasks"]):
        [entry] = task["lengths"]
        own = [record["tasks"][number]["lengths"][0] for record in single]
        assert entry["scores"] == [score for one in own for score in one["scores"]]
        assert [one["score"] for one in entry["seeds"]] == pytest.approx([one["score"] for one in own])
    [average] = pooled["average"]
    assert [one["score"] for one in average["seeds"]] == pytest.approx([r["average"][0]["score"] for r in single])
    assert average["seed_spread"] == pytest.approx(stdev(one["score"] for one in average["seeds"]))
