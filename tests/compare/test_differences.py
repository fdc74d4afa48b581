"""Paired differences of a stored comparison, computed again by numpy alone; and what ``--against`` chooses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ropectl.compare.differences import check_against, references
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.records import MethodRow, Pick, Reach
from ropectl.rope.registry import parse_method

Run = Callable[..., tuple[int, str, str]]
STUDENT_OF_11, STUDENT_OF_2 = 2.2009852, 4.3026527


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of a comparison of the built-in model, as a user finds it."""
    from ropectl.compare.run import compare_methods

    folder = tmp_path_factory.mktemp("differences") / "run"
    config = CompareConfig(methods=("yarn", "ntk"), factor=4, lengths=(256, 512, 1024), trials=4, depths=3)
    compare_methods(config, folder)
    record: dict[str, Any] = json.loads((folder / "comparison.json").read_text())
    return record


def interval(sums: np.ndarray, tokens: np.ndarray) -> tuple[float, float, float]:
    """A mean over tokens, and its interval: Student's, or that of a studentized bootstrap where it is longer."""
    count = len(sums)

    def mean_and_error(x: np.ndarray, w: np.ndarray) -> tuple[float, float]:
        mean = x.sum() / w.sum()
        return mean, math.sqrt(count / (count - 1) * ((x - mean * w) ** 2).sum()) / w.sum()

    mean, error = mean_and_error(sums, tokens)
    rng = np.random.default_rng(123)
    drawn = [mean_and_error(sums[i], tokens[i]) for i in rng.integers(0, count, (20_000, count))]
    low, high = np.quantile([(m - mean) / e for m, e in drawn], [0.025, 0.975])
    student = STUDENT_OF_11 if count == 12 else STUDENT_OF_2
    return mean, mean - max(high, student) * error, mean - min(low, -student) * error


@pytest.mark.process
@pytest.mark.parametrize("measure", ["prefix", "tail"])
def test_losses_are_paired_by_document(stored: dict[str, Any], measure: str) -> None:
    """The mean difference is exact; draws of another seed give the ends within 6 % of the interval's width."""
    found = [one for one in stored["differences"] if one["measure"] == measure]
    assert len(found) == 3 * (2 + 2), "three lengths, two other rows, two references: the unscaled model and the pick"
    key = "perplexity" if measure == "prefix" else "tail"
    for one in found:
        ours, theirs = (
            next(p for p in stored["rows"][one[index]][key] if p["context_length"] == one["length"])
            for index in ("row", "against")
        )
        sums = np.subtract(ours["document_nll_sums"], theirs["document_nll_sums"])
        value, low, high = interval(sums, np.array(ours["document_num_tokens"], float))
        assert one["value"] == pytest.approx(value, rel=1e-9, abs=1e-12) and one["units"] == 12
        assert (one["ci_low"], one["ci_high"]) == pytest.approx((low, high), abs=0.06 * (high - low))
        assert one["told_apart"] is ((one["ci_low"] > 0 or one["ci_high"] < 0) and abs(one["value"]) >= 5e-4)


@pytest.mark.process
def test_the_price_is_paired_at_its_worst_length(stored: dict[str, Any]) -> None:
    baseline = {point["context_length"]: point for point in stored["rows"][0]["perplexity"]}
    for index, row in enumerate(stored["rows"][1:], 1):
        changes = {
            p["context_length"]: p["perplexity"] / baseline[p["context_length"]]["perplexity"] - 1
            for p in row["perplexity"]
            if p["context_length"] <= 512
        }
        worst = max(changes, key=lambda length: changes[length])
        assert row["short_delta"] == pytest.approx(changes[worst], rel=1e-9)
        [loss] = [
            one
            for one in stored["differences"]
            if (one["measure"], one["row"], one["against"], one["length"]) == ("prefix", index, 0, worst)
        ]
        ends = row["short_delta_ci_low"], row["short_delta_ci_high"]
        assert ends == pytest.approx((math.expm1(loss["ci_low"]), math.expm1(loss["ci_high"])), rel=1e-9)


@pytest.mark.process
def test_answers_are_paired_by_prompt(stored: dict[str, Any]) -> None:
    """The exact test by adding up coin tosses; the interval holds zero exactly where it tells nothing apart."""
    found = [one for one in stored["differences"] if one["measure"] == "passkey"]
    assert found
    for one in found:
        ours, theirs = (
            np.concatenate([cell["outcomes"] for entry in stored["rows"][one[index]]["passkey"] for cell in entry["depths"] if entry["length"] == one["length"]])
            for index in ("row", "against")
        )  # fmt: skip
        wins, losses = int((ours > theirs).sum()), int((ours < theirs).sum())
        chances = np.ones(1)
        for _ in range(wins + losses):
            chances = np.convolve(chances, [0.5, 0.5])
        p_value = min(1.0, 2 * chances[: min(wins, losses) + 1].sum())
        assert one["value"] == pytest.approx((ours - theirs).mean()) and one["units"] == len(ours) == 12
        assert one["p_value"] == pytest.approx(p_value)
        assert one["told_apart"] is (one["ci_low"] > 0 or one["ci_high"] < 0)
        assert p_value <= 0.05 or not one["told_apart"]


@pytest.mark.process
def test_a_table_names_what_it_is_against(ropectl: Run, tmp_path: Path) -> None:
    arguments = ("compare-methods", "-m", "yarn", "-m", "ntk", "--factor", "4", "--documents", "3", "--no-passkey")
    arguments += ("--length", "256", "-o", str(tmp_path / "run"))
    code, out, err = ropectl(*arguments, "--against", "ntk")
    assert code == 0 and "Loss against ntk, in pairs" in out and "Loss against yarn" not in out, err
    code, out, _ = ropectl(*arguments, "--against", "ntk", "--format", "csv")
    assert code == 0 and "nll_difference,prefix,256" in out and "ntk:factor=4" in out.splitlines()[-1]
    code, _, err = ropectl(*arguments, "--against", "yam")
    assert code == 2 and "against = 'yam'" in err and "yarn" in err


def test_against_names_one_row() -> None:
    methods = [parse_method(spec) for spec in ("none", "yarn:factor=2", "yarn:factor=4", "pi:factor=2")]
    for name in ("none", "pi", "yarn:factor=2", "other-model"):
        check_against(CompareConfig(against=(name,), others=("other-model",)), methods)
    with pytest.raises(ConfigError, match="several of the rows: yarn:factor=2, yarn:factor=4"):
        check_against(CompareConfig(against=("yarn",)), methods)
    with pytest.raises(ConfigError, match=r"against = .abf"):
        check_against(CompareConfig(against=("abf",)), methods)


def test_references_are_the_unscaled_model_and_the_pick() -> None:
    rows = [
        MethodRow("m", name, [], [], [], Reach(512), None, 0.0) for name in ("none", "yarn:factor=4", "pi:factor=4")
    ]
    rows.append(MethodRow("other", "none", [], [], [], Reach(512), None, 0.0))
    assert references(rows, None, ()) == [0] and references(rows, Pick("m", "pi:factor=4", []), ()) == [0, 2]
    assert references(rows, Pick("m", "none", []), ()) == [0]
    assert references(rows, Pick("m", "none", []), ("yarn", "other")) == [1, 3]
