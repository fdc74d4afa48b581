"""A comparison end to end: contract, resume, failures, and numbers that equal the single commands'."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from ropectl.compare import factory
from ropectl.compare.run import compare_methods
from ropectl.evaluate import setup
from ropectl.evaluate.config import CompareConfig, PasskeyConfig, PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from ropectl.evaluate.retrieval.passkey_evaluation import evaluate_passkey
from ropectl.reporter import Reporter
from ropectl.rope.registry import all_methods

pytestmark = pytest.mark.process

Run = Callable[..., tuple[int, str, str]]


def all_methods_of(model: Path) -> CompareConfig:
    """Every method on a random model of 128 trained tokens."""
    return CompareConfig(model=str(model), factor=4, lengths=(128, 200, 512), documents=2, trials=2, depths=2)


@pytest.fixture
def config(checkpoint: Callable[..., Path]) -> CompareConfig:
    """All methods, on a model of the test's own."""
    return all_methods_of(checkpoint())


@dataclass
class Finished:
    """A comparison that nothing interrupted, which tests copy."""

    config: CompareConfig
    folder: Path
    record: Any
    notes: list[str]
    num_failed: int
    num_loads: int

    @classmethod
    def of(cls, config: CompareConfig, folder: Path) -> Finished:
        reporter, loads, load = Reporter(), [], setup.load_model
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(setup, "load_model", lambda *args: loads.append(1) or load(*args))
            done = compare_methods(config, folder, reporter)
        return cls(config, folder, done.record, reporter.notes, done.num_failed, len(loads))

    def copy(self, place: Path) -> Path:
        """The folder once more."""
        return shutil.copytree(self.folder, place / "run", copy_function=shutil.copy2)


@pytest.fixture(scope="module")
def whole(saved_tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Of every method."""
    return Finished.of(all_methods_of(saved_tiny), tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="module")
def few(saved_tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Of one method."""
    config = all_methods_of(saved_tiny).model_copy(update={"methods": ("pi",), "lengths": (128, 200)})
    return Finished.of(config, tmp_path_factory.mktemp("few") / "run")


def without_times(record: Any) -> Any:
    if isinstance(record, dict):
        return {key: without_times(value) for key, value in record.items() if key not in ("seconds", "command")}
    return [without_times(value) for value in record] if isinstance(record, list) else record


def test_every_method_is_compared(whole: Finished) -> None:
    record = whole.record
    names = [row["method"].partition(":")[0] for row in record["rows"]]
    assert names == [name for name in all_methods() if name != "longrope"] and names[0] == "none"
    assert any("longrope is not compared" in note and "long_factor" in note for note in whole.notes)
    assert {"model", "text", "protocol", "lengths", "rows", "pick", "manifest"} <= set(record)
    for row in record["rows"]:
        assert {"method", "perplexity", "passkey", "reach", "short_delta", "seconds"} <= set(row)
        assert [point["context_length"] for point in row["perplexity"]] == [128, 200, 512]
        assert [entry["length"] for entry in row["passkey"]] == [128, 200, 512]
        assert all(one["outcome"] != "yes" for one in row["reach"]["uses_at"]), "4 trials prove nothing"
    assert record["rows"][0]["short_delta"] == 0.0
    assert json.loads((whole.folder / "comparison.json").read_text()) == record
    assert (whole.num_failed, whole.num_loads) == (0, 1)


def test_numbers_equal_the_single_commands(whole: Finished) -> None:
    """Bit-equal: neither the order of methods nor what else is measured changes a number."""
    shared = {"model": whole.config.model, "lengths": (512, 200, 128)}
    for row in whole.record["rows"]:
        spec = row["method"]
        if spec == "none":
            continue
        text = {"documents": 2, "method": spec}
        single = evaluate_perplexity(PerplexityConfig(**shared, **text))
        assert single["points"] == row["perplexity"]
        passkey = evaluate_passkey(PasskeyConfig(**shared, method=spec, trials=2, depths=2))
        assert passkey["lengths"] == row["passkey"]


def test_the_baseline_and_a_trained_length_are_always_there(config: CompareConfig, tmp_path: Path) -> None:
    asked = config.model_copy(update={"methods": ("pi",), "lengths": (512,)})
    reporter = Reporter()
    record = compare_methods(asked, tmp_path / "run", reporter).record
    assert [row["method"] for row in record["rows"]] == ["none", "pi:factor=4"]
    assert record["lengths"] == [128, 512] and any("trained length 128" in note for note in reporter.notes)
    assert record["rows"][1]["short_delta"] is not None


def test_a_second_run_measures_nothing_and_says_the_same(
    whole: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "load_model", lambda *_: pytest.fail("weights were loaded"))
    assert compare_methods(whole.config, whole.copy(tmp_path)).record == whole.record


def test_an_interrupted_run_continues(whole: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = factory.answer_passkeys

    def killed(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(factory, "answer_passkeys", killed)
    with pytest.raises(KeyboardInterrupt):
        compare_methods(whole.config, tmp_path / "run")
    assert not (tmp_path / "run" / "comparison.json").exists()
    finished = {path: path.read_bytes() for path in (tmp_path / "run" / "cells").glob("*.json")}
    assert finished and not list((tmp_path / "run").rglob("*.tmp"))
    resumed = compare_methods(whole.config, tmp_path / "run").record
    assert without_times(resumed) == without_times(whole.record)
    assert all(path.read_bytes() == content for path, content in finished.items())


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}"])
def test_a_damaged_record_is_measured_again(few: Finished, tmp_path: Path, damage: str) -> None:
    min((few.copy(tmp_path) / "cells").glob("*.json")).write_text(damage)
    assert without_times(compare_methods(few.config, tmp_path / "run").record) == without_times(few.record)


@pytest.mark.parametrize("kind", ["prefix", "passkey"])
@pytest.mark.parametrize(
    "damage",
    [
        {"result": None},
        {"result": {}},
        {"result": {"points": "x", "cells": "x"}},
        {"result": {"points": [{"unknown": 1}], "cells": [{"unknown": 1}]}},
        {"result": {"points": [], "cells": []}},
        {"seconds": None},
        {"seconds": math.nan},
        {"id": "0" * 16},
        {"error": "boom"},
        {"error": {"type": "RuntimeError", "message": "a failure of a version that told no length"}},
    ],
)
def test_a_record_that_says_too_little_is_measured_again(
    few: Finished, tmp_path: Path, kind: str, damage: dict[str, Any]
) -> None:
    paths = sorted((few.copy(tmp_path) / "cells").glob("*.json"))
    path, record = next((p, r) for p in paths if (r := json.loads(p.read_text()))["settings"]["kind"] == kind)
    path.write_text(json.dumps({**record, **damage}))
    again = compare_methods(few.config, tmp_path / "run")
    assert without_times(again.record) == without_times(few.record) and again.num_failed == 0
    assert without_times(json.loads(path.read_text())) == without_times(record)


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"trials": 3}, {"documents": 1}, {"bos": "never"}, {"factor": 2.0}, {"dtype": "bfloat16"}]
)
def test_changed_settings_never_mix(few: Finished, tmp_path: Path, change: dict[str, Any]) -> None:
    changed = compare_methods(few.config.model_copy(update=change), few.copy(tmp_path)).record
    ids = [{cell["id"] for cell in record["manifest"]["cells"]} for record in (few.record, changed)]
    again = compare_methods(few.config, tmp_path / "run").record
    assert ids[0] - ids[1] and without_times(again) == without_times(few.record)


def test_other_weights_are_another_model(config: CompareConfig, tmp_path: Path) -> None:
    few = config.model_copy(update={"methods": ("yarn",)})
    first = compare_methods(few, tmp_path / "run").record
    model = AutoModelForCausalLM.from_pretrained(config.model)
    model.model.norm.weight.data.mul_(1.5)
    model.save_pretrained(config.model)
    second = compare_methods(few, tmp_path / "run").record
    assert first["rows"][0]["perplexity"] != second["rows"][0]["perplexity"]


@pytest.mark.parametrize("failure", [RuntimeError("out of memory"), TypeError("out of memory")])
def test_a_failing_cell_is_its_own_result(
    config: CompareConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    config = config.model_copy(update={"methods": ("pi", "yarn")})
    original = factory.answer_passkeys

    def failing(model: Any, method: Any, geometry: Any, prompts: Sequence[Any], *rest: Any, **options: Any) -> Any:
        if method.name == "pi" and any(prompt.point.length == 512 for prompt in prompts):
            raise failure
        return original(model, method, geometry, prompts, *rest, **options)

    with monkeypatch.context() as context:
        context.setattr(factory, "answer_passkeys", failing)
        comparison = compare_methods(config, tmp_path / "run")
    assert comparison.num_failed == 1
    rows = {row["method"]: row for row in comparison.record["rows"]}
    assert rows["pi:factor=4"]["errors"] == ["passkey 512: out of memory"]
    assert [entry["length"] for entry in rows["pi:factor=4"]["passkey"]] == [128, 200], "what fits is measured"
    assert rows["pi:factor=4"]["reach"]["uses"] is None
    assert len(rows["yarn:factor=4"]["passkey"]) == 3
    again = compare_methods(config, tmp_path / "run")
    assert again.num_failed == 1 and without_times(again.record) == without_times(comparison.record), "it is kept"
    repaired = compare_methods(config, tmp_path / "run", retry_failed=True)
    assert repaired.num_failed == 0, "a failed cell is measured again when asked to"


def test_scaled_checkpoints_are_not_scaled_again(checkpoint: Callable[..., Path], ropectl: Run) -> None:
    folder = checkpoint(
        rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}, max_position_embeddings=512
    )
    code, _, err = ropectl("compare-methods", folder, "-m", "ntk", "--factor", "4", "--no-passkey")
    assert code == 2 and "already scaled: pi:factor=4 over a trained length of 128" in err and "--replace" in err
    code, out, err = ropectl(
        "compare-methods", folder, "--no-passkey", "--documents", "1", "-o", folder.parent / "b", "--format", "json"
    )
    assert code == 0 and "To compare every method in its place: --replace" in err
    assert [row["method"] for row in json.loads(out)["rows"]] == ["none", "pi:factor=4"]
    short = ["--no-passkey", "--documents", "1", "--format", "json"]
    code, out, _ = ropectl("compare-methods", folder, "-m", "none", *short, "-o", folder.parent / "a")
    assert code == 0 and [row["method"] for row in json.loads(out)["rows"]] == ["none", "pi:factor=4"]
    scaled = ["-m", "ntk", "--factor", "4", "--replace", "-o", folder.parent / "run"]
    code, out, _ = ropectl("compare-methods", folder, *short, *scaled)
    assert code == 0 and [row["method"] for row in json.loads(out)["rows"]] == ["none", "pi:factor=4", "ntk:factor=4"]


def test_short_regressions_can_fail_a_run(ropectl: Run, tmp_path: Path) -> None:
    """The pick reaches further and costs perplexity up to L; how much is allowed sets the exit code."""
    arguments = [
        "compare-methods",
        "-m",
        "yarn",
        "--factor",
        "2",
        "--length",
        "512,1k",
        "--documents",
        "2",
        "--trials",
        "4",
    ]
    code, out, err = ropectl(*arguments, "-o", tmp_path / "run")
    assert code == 0 and "worst up to L" in out and f"Records: {tmp_path / 'run'}" in err
    record = json.loads((tmp_path / "run" / "comparison.json").read_text())
    delta = next(row["short_delta"] for row in record["rows"] if row["method"] == record["pick"]["method"])
    assert record["pick"]["method"] == "yarn:factor=2" and delta > 0.001
    for limit, expected in ((delta / 2, 3), (delta * 2, 0)):
        assert ropectl(*arguments, "-o", tmp_path / "run", "--max-short-regression", str(limit))[0] == expected


def test_what_a_config_leaves_open_is_said(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    block = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
    folder = checkpoint(rope_parameters=block, max_position_embeddings=512)
    reporter = Reporter()
    compare_methods(CompareConfig(model=str(folder), documents=1, passkey=False), tmp_path / "run", reporter)
    assert any("--original-length 512" in note for note in reporter.notes)


def test_another_comparison_in_the_same_folder_is_kept(config: CompareConfig, tmp_path: Path) -> None:
    reporter = Reporter()
    few = config.model_copy(update={"methods": ("pi",)})
    first = compare_methods(few, tmp_path / "run").record
    compare_methods(few.model_copy(update={"methods": ("yarn",)}), tmp_path / "run", reporter)
    kept = list((tmp_path / "run").glob("comparison-*.json"))
    assert len(kept) == 1 and json.loads(kept[0].read_text()) == first
    assert any("held another comparison" in note for note in reporter.notes)


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_what_is_no_json_in_an_old_file_stops_nothing(config: CompareConfig, tmp_path: Path, number: str) -> None:
    """A record of a cell that holds such a number is measured again; a comparison that does is put aside like any other."""
    few = config.model_copy(update={"methods": ("pi",), "passkey": False})
    first = compare_methods(few, tmp_path / "run").record
    file, cell = tmp_path / "run" / "comparison.json", next((tmp_path / "run" / "cells").iterdir())
    file.write_text(file.read_text().replace('"tolerance": 0.02', f'"tolerance": {number}'))
    assert number in file.read_text()
    perplexity = re.compile(r'"perplexity": [\d.]+')
    assert perplexity.search(cell.read_text())
    cell.write_text(perplexity.sub(f'"perplexity": {number}', cell.read_text()))
    reporter = Reporter()
    again = compare_methods(few, tmp_path / "run", reporter).record
    assert without_times(again) == without_times(first) and number not in cell.read_text()
    aside = list((tmp_path / "run").glob("comparison-*.json"))
    assert len(aside) == 1 and number in aside[0].read_text()
    assert any("held another comparison" in note for note in reporter.notes)


def test_unwritable_folder_is_refused(ropectl: Run, checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, _, err = ropectl("compare-methods", checkpoint(), "-m", "pi", "--factor", "2", "-o", tmp_path / "file")
    assert code == 2 and "is a file" in err
    assert (tmp_path / "file").read_text() == "x"


def test_the_model_is_left_as_it_was(model: LlamaForCausalLM, config: CompareConfig, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in Path(config.model).iterdir()}
    compare_methods(config.model_copy(update={"methods": ("pi", "dynamic-yarn")}), tmp_path / "run")
    assert {path.name: path.read_bytes() for path in Path(config.model).iterdir()} == before
