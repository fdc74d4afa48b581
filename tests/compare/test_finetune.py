"""Every method trained equally, then measured again: rows, numbers, interruptions and failures."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.compare.run import Comparison, compare_methods
from ropectl.compare.tuned import training
from ropectl.compare.tuned.recipe import REFUSED
from ropectl.errors import ConfigError, TrainingError
from ropectl.evaluate import setup
from ropectl.evaluate.config import CompareConfig, PasskeyConfig, PerplexityConfig
from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
from ropectl.evaluate.retrieval.passkey_evaluation import evaluate_passkey
from ropectl.reporter import Reporter
from tests.conftest import make_model
from tests.processes import Running

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]
Run = Callable[..., tuple[int, str, str]]

RECIPE = {"steps": 3, "batch_size": 1, "seq_len": 160, "learning_rate": "1e-3", "warmup_steps": 0}
LENGTHS = (128, 200, 512)
METHODS = ("dynamic-yarn", "pi")
ROWS = [("none", False), ("none", True)]
ROWS += [(method, tuned) for method in ("dynamic-yarn", "pi:factor=4") for tuned in (False, True)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a random model of 128 trained tokens, a training text and a cache of its own."""
    folder = tmp_path_factory.mktemp("finetune")
    make_model().save_pretrained(folder / "model")
    AutoTokenizer.from_pretrained(TINY_MODEL_DIR).save_pretrained(folder / "model")
    lines = [f"def function_{i}(argument):\n    return argument * {i * i} + {i % 7}\n" for i in range(400)]
    (folder / "text.txt").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROPECTL_CACHE", str(folder / "cache"))
        yield folder


@pytest.fixture
def asked(place: Path, tmp_path: Path) -> Callable[..., CompareConfig]:
    """Makes the request; keyword arguments change the file of training settings."""

    def make(**changes: Any) -> CompareConfig:
        return request(place, tmp_path / "recipe.yaml", **changes)

    return make


def request(place: Path, file: Path, **changes: Any) -> CompareConfig:
    settings = {"text": str(place / "text.txt"), **RECIPE, **changes}
    file.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    return CompareConfig(
        model=str(place / "model"), methods=METHODS, factor=4, lengths=LENGTHS, documents=2, trials=1, depths=2,
        finetune=file,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(place: Path, one_thread: None) -> Comparison:
    """One comparison that nothing interrupted."""
    return compare_methods(request(place, place / "recipe.yaml"), place / "whole")


def rows_of(record: Mapping[str, Any]) -> dict[tuple[str, bool], dict[str, Any]]:
    return {(row["method"], row["training"] is not None): row for row in record["rows"]}


def numbers(record: Mapping[str, Any]) -> list[Any]:
    """Rows without what differs from run to run: times and places."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(v) for key, v in value.items() if key not in ("seconds", "checkpoint")}
        return [clean(v) for v in value] if isinstance(value, list) else value

    return [clean(row) for row in record["rows"]]


def test_rows_and_equal_tokens(whole: Comparison) -> None:
    record = whole.record
    assert [(row["method"], row["training"] is not None) for row in record["rows"]] == ROWS
    assert whole.num_failed == whole.num_untrained == 0 and not any(row["errors"] for row in record["rows"])
    trainings = [row["training"] for row in record["rows"] if row["training"]]
    assert {key for summary in trainings for key in summary} == {
        "id", "steps", "tokens", "seconds", "last_loss", "checkpoint",
    }  # fmt: skip
    assert [summary["steps"] for summary in trainings] == [3] * 3
    assert [summary["tokens"] for summary in trainings] == [3 * 159] * 3
    assert len({summary["id"] for summary in trainings}) == 3 and all(s["last_loss"] > 0 for s in trainings)
    assert record["rows"][0]["short_delta"] == 0.0 != record["rows"][1]["short_delta"], (
        "verdicts are against the untouched"
    )
    for row in record["rows"]:
        assert [point["context_length"] for point in row["perplexity"]] == list(LENGTHS) and len(row["passkey"]) == 3
    told = record["manifest"]["finetune"]
    assert "seq_len: 160" in told["content"] and told["settings"]["learning_rate"] == 1e-3
    assert json.loads((whole.folder / "comparison.json").read_text()) == record


def test_computes_counts_the_positions_of_the_training(whole: Comparison) -> None:
    computes = {key: row["reach"]["computes"] for key, row in rows_of(whole.record).items()}
    assert computes["none", False] == 128 and computes["none", True] == 160
    assert computes["pi:factor=4", False] == computes["pi:factor=4", True] == 512


def test_untrained_rows_are_those_of_a_comparison_that_does_not_train(
    place: Path, whole: Comparison, tmp_path: Path
) -> None:
    config = request(place, tmp_path / "recipe.yaml").model_copy(update={"finetune": None})
    alone = compare_methods(config, tmp_path / "run").record
    assert numbers(alone) == [row for row in numbers(whole.record) if row["training"] is None]
    ids = [{cell["id"] for cell in record["manifest"]["cells"]} for record in (alone, whole.record)]
    assert ids[0] < ids[1], "their records are shared"


@pytest.mark.parametrize("method", ["none", "pi:factor=4"])
def test_a_tuned_row_is_the_tuned_checkpoint(whole: Comparison, method: str) -> None:
    """As any user of the checkpoint would measure it: nothing is said about the method."""
    row = rows_of(whole.record)[method, True]
    folder = row["training"]["checkpoint"]
    single = evaluate_perplexity(PerplexityConfig(model=folder, lengths=LENGTHS, documents=2))
    assert single["method"] == method and single["points"] == row["perplexity"]
    tail = evaluate_perplexity(PerplexityConfig(model=folder, lengths=LENGTHS, documents=2, protocol="tail"))
    assert tail["points"] == row["tail"]
    passkey = evaluate_passkey(PasskeyConfig(model=folder, lengths=LENGTHS, trials=1, depths=2))
    assert passkey["lengths"] == row["passkey"]
    assert row["perplexity"] != rows_of(whole.record)[method, False]["perplexity"]


def test_a_frozen_checkpoint_is_measured_by_its_method(place: Path, whole: Comparison, tmp_path: Path) -> None:
    """The tuned weights under the config of the original: the scaling that was written is not stacked on."""
    row = rows_of(whole.record)["dynamic-yarn", True]
    tuned = Path(row["training"]["checkpoint"])
    assert json.loads((tuned / "ropectl.json").read_text())["seq_len"] == 512, "frozen at the target"
    shutil.copytree(place / "model", tmp_path / "model")
    shutil.copy(tuned / "model.safetensors", tmp_path / "model" / "model.safetensors")
    config = PerplexityConfig(model=str(tmp_path / "model"), method="dynamic-yarn", lengths=LENGTHS, documents=2)
    assert evaluate_perplexity(config)["points"] == row["perplexity"]


def test_all_start_from_the_same_weights_and_order(whole: Comparison) -> None:
    """The first batch is the same text: where methods agree up to the trained length, so does the first loss."""
    records = [
        json.loads((Path(row["training"]["checkpoint"]) / "ropectl.json").read_text())["training"]
        for row in whole.record["rows"] if row["training"]
    ]  # fmt: skip
    decided = ("method", "target_length", "freeze_at", "factor")
    shared = [{k: v for k, v in record["settings"].items() if k not in decided} for record in records]
    assert shared[0] == shared[1] == shared[2] and shared[0]["seed"] == 0 and shared[0]["seq_len"] == 160


def test_a_second_run_repeats_nothing(place: Path, whole: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "load_model", lambda *_: pytest.fail("weights were loaded"))
    monkeypatch.setattr(training, "finetune", lambda *_: pytest.fail("something was trained"))
    reporter = Reporter()
    second = compare_methods(request(place, place / "recipe.yaml"), whole.folder, reporter)
    assert second.record == whole.record
    assert sum("is its finished result" in note for note in reporter.notes) == 3


def test_states_of_finished_trainings_are_gone(whole: Comparison) -> None:
    assert len(list(whole.folder.glob("tuned/*/model.run/metrics.jsonl"))) == 3
    assert not list(whole.folder.glob("tuned/*/model.run/state-*"))


def test_an_interruption_after_the_first_training(
    place: Path, whole: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole.folder, tmp_path / "run", copy_function=shutil.copy2)
    (tmp_path / "run" / "comparison.json").unlink()
    for folder in (tmp_path / "run" / "tuned").iterdir():
        if not folder.name.startswith("none-"):
            shutil.rmtree(folder)
    trained, original = [], training.finetune
    monkeypatch.setattr(training, "finetune", lambda s, r: trained.append(s.method) or original(s, r))
    cells = {path.name: path.read_bytes() for path in (tmp_path / "run" / "cells").iterdir()}
    resumed = compare_methods(request(place, place / "recipe.yaml"), tmp_path / "run").record
    assert trained == ["dynamic-yarn", "pi:factor=4"]
    assert numbers(resumed) == numbers(whole.record)
    assert all((tmp_path / "run" / "cells" / name).read_bytes() == content for name, content in cells.items())


class Interrupting(Reporter):
    """Presses Ctrl-C in the second step of the second training."""

    trainings = 0

    @contextmanager
    def nested(self, label: str) -> Iterator[Reporter]:
        self.trainings += not label.startswith("training data")
        outer = self

        class Listener(Reporter):
            def step(self, metrics: Mapping[str, Any]) -> None:
                if outer.trainings == 2 and metrics["step"] == 2:
                    signal.raise_signal(signal.SIGINT)

        yield Listener()


def test_ctrl_c_in_a_training(place: Path, whole: Comparison, tmp_path: Path) -> None:
    config = request(place, place / "recipe.yaml")
    with pytest.raises(KeyboardInterrupt):
        compare_methods(config, tmp_path / "run", Interrupting())
    states = list((tmp_path / "run").glob("tuned/dynamic-yarn-*/model.run/state-00000002"))
    assert len(states) == 1 and len(list((tmp_path / "run").glob("tuned/*/model"))) == 1
    reporter = Reporter()
    resumed = compare_methods(config, tmp_path / "run", reporter).record
    assert any(note.startswith("dynamic-yarn, tuned: Continuing after step 2") for note in reporter.notes)
    assert numbers(resumed) == numbers(whole.record)


def test_kill_in_a_training(place: Path, tmp_path: Path) -> None:
    """kill -9 in the middle of the second training; the same command finishes it with the numbers of a whole run."""
    steps = {"steps": 40, "save_every": 2}
    config = request(place, tmp_path / "recipe.yaml", **steps).model_copy(update={"passkey": False, "methods": ("pi",)})
    arguments = [
        "compare-methods", config.model, "-m", "pi", "--factor", "4", "--length", "128,200,512", "--documents", "2",
        "--no-passkey", "--finetune", str(tmp_path / "recipe.yaml"), "-o", str(tmp_path / "run"), "--format", "json",
    ]  # fmt: skip
    process = Running(["-m", "ropectl", *arguments])
    deadline = time.monotonic() + 240
    while not list((tmp_path / "run").glob("tuned/pi-*/model.run/state-0000000[4-9]")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate()
    assert process.returncode == -9 and out == b""
    assert not (tmp_path / "run" / "comparison.json").exists()
    before = {path: path.read_bytes() for path in (tmp_path / "run" / "cells").glob("*.json")}
    first = next((tmp_path / "run").glob("tuned/none-*/model/model.safetensors"))
    time_of_first = first.stat().st_mtime_ns

    reporter = Reporter()
    resumed = compare_methods(config, tmp_path / "run", reporter).record
    assert any(note.startswith("pi:factor=4, tuned: Continuing after step") for note in reporter.notes)
    assert first.stat().st_mtime_ns == time_of_first
    assert before and all(path.read_bytes() == content for path, content in before.items())
    assert numbers(resumed) == numbers(compare_methods(config, tmp_path / "other").record)


def test_a_diverging_training_is_a_recorded_error(
    asked: Callable[..., CompareConfig], ropectl: Run, tmp_path: Path
) -> None:
    config = asked(learning_rate="1e30", steps=6)
    arguments = [
        "compare-methods", config.model, "-m", "pi", "--factor", "4", "--length", "128,512", "--documents", "1",
        "--no-passkey", "--finetune", config.finetune, "-o", tmp_path / "run",
    ]  # fmt: skip
    code, out, err = ropectl(*arguments)
    assert code == 1 and "2 trainings failed" in err and "pi, tuned failed: training: In step" in out
    record = json.loads((tmp_path / "run" / "comparison.json").read_text())
    rows = rows_of(record)
    assert set(rows) == {("none", False), ("none", True), ("pi:factor=4", False), ("pi:factor=4", True)}
    for (_, tuned), row in rows.items():
        assert bool(row["errors"]) is tuned and bool(row["perplexity"]) is not tuned
        assert not tuned or (row["training"]["id"] and row["training"]["checkpoint"] is None)


def test_one_failure_costs_one_row(
    place: Path, whole: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = training.finetune

    def failing(settings: Any, reporter: Any) -> Any:
        if settings.method == "dynamic-yarn":
            raise TrainingError("Memory ran out.", "Levers: ...")
        return original(settings, reporter)

    config = request(place, place / "recipe.yaml")
    with monkeypatch.context() as context:
        context.setattr(training, "finetune", failing)
        comparison = compare_methods(config, tmp_path / "run")
    assert (comparison.num_failed, comparison.num_untrained) == (0, 1)
    rows = rows_of(comparison.record)
    assert rows["dynamic-yarn", True]["errors"] == ["training: Memory ran out. Levers: ..."]
    assert rows["pi:factor=4", True]["perplexity"] == rows_of(whole.record)["pi:factor=4", True]["perplexity"]
    repaired = compare_methods(config, tmp_path / "run")
    assert repaired.num_untrained == 0 and numbers(repaired.record) == numbers(whole.record)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_comparison_decides_is_refused(
    asked: Callable[..., CompareConfig], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "read_source", lambda *_: pytest.fail("the model was read"))
    config = asked(**{name.replace("_", "-"): 1})
    with pytest.raises(
        ConfigError, match=rf"recipe.yaml sets what a comparison decides itself: {name.replace('_', '-')} \("
    ):
        compare_methods(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stepz": 3}, "recipe.yaml: There is no setting 'stepz'"),
        ({"steps": 0}, "recipe.yaml: steps = 0 is not possible"),
        ({"strategy": "magic"}, "magic"),
        ({"schedule": "steep"}, "steep"),
        ({"seq_len": "4m"}, "4000000|4194304"),
        ({"text": "absent.txt"}, "absent.txt"),
        ({"short_fraction": 0.5, "seq_len": 128}, "short-fraction"),
        ({"eval_every": 2}, "eval-text"),
    ],
)
def test_typing_errors_show_before_weights_load(
    asked: Callable[..., CompareConfig],
    changes: dict[str, Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(setup, "load_model", lambda *_: pytest.fail("weights were loaded"))
    config = asked(**changes)
    with pytest.raises(ConfigError, match=message):
        compare_methods(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_missing_file_and_a_launcher_are_refused(
    ropectl: Run, asked: Callable[..., CompareConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = ropectl("compare-methods", "--finetune", tmp_path / "absent.yaml")
    assert code == 2 and "there is no such file" in err
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="one process"):
        compare_methods(asked(), tmp_path / "run")


def test_training_on_what_is_measured_is_refused(asked: Callable[..., CompareConfig]) -> None:
    with pytest.raises(ConfigError, match="also the text that is measured"):
        compare_methods(asked(text="builtin:stdlib"))


def test_a_place_inside_the_model_is_refused(asked: Callable[..., CompareConfig], place: Path) -> None:
    with pytest.raises(ConfigError, match="the folder of a model"):
        compare_methods(asked(), place / "model" / "run")
    assert not (place / "model" / "run").exists()


def test_pose_and_lora(asked: Callable[..., CompareConfig], tmp_path: Path) -> None:
    """What aims no further than a sequence has nothing to skip; an adapter is measured like any model."""
    config = asked(positions="pose", seq_len=128, strategy="lora", merge="false", learning_rate="1e-2")
    config = config.model_copy(update={"methods": ("pi",), "passkey": False})
    reporter = Reporter()
    record = compare_methods(config, tmp_path / "run", reporter).record
    assert list(rows_of(record)) == [("none", False), ("pi:factor=4", False), ("pi:factor=4", True)]
    assert any(note.startswith("none is not trained") for note in reporter.notes)
    row = rows_of(record)["pi:factor=4", True]
    assert (Path(row["training"]["checkpoint"]) / "adapter_config.json").is_file()
    single = evaluate_perplexity(PerplexityConfig(model=row["training"]["checkpoint"], lengths=LENGTHS, documents=2))
    assert single["method"] == "pi:factor=4" and single["points"] == row["perplexity"]


def test_other_training_settings_never_mix(
    asked: Callable[..., CompareConfig], whole: Comparison, tmp_path: Path
) -> None:
    shutil.copytree(whole.folder, tmp_path / "run", copy_function=shutil.copy2)
    config = asked(seed=1).model_copy(update={"passkey": False})
    record = compare_methods(config, tmp_path / "run").record
    old, new = rows_of(whole.record), rows_of(record)
    assert new["pi:factor=4", False]["perplexity"] == old["pi:factor=4", False]["perplexity"]
    assert new["pi:factor=4", True]["perplexity"] != old["pi:factor=4", True]["perplexity"]
    assert len(list((tmp_path / "run" / "tuned").glob("pi-*"))) == 2
    assert len(list((tmp_path / "run").glob("comparison-*.json"))) == 1


def test_an_already_scaled_model(place: Path, tmp_path: Path) -> None:
    """Its own scaling stays in force for its own row, and is taken out for the control."""
    block = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
    shutil.copytree(place / "model", tmp_path / "scaled")
    path = tmp_path / "scaled" / "config.json"
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"rope_parameters": block, "max_position_embeddings": 512})
    )
    config = request(place, tmp_path / "recipe.yaml").model_copy(
        update={"model": str(tmp_path / "scaled"), "methods": (), "factor": None, "passkey": False}
    )
    record = compare_methods(config, tmp_path / "run").record
    assert list(rows_of(record)) == [("none", False), ("none", True), ("pi:factor=4", False), ("pi:factor=4", True)]
    for (method, tuned), row in rows_of(record).items():
        if tuned:
            written = evaluate_perplexity(
                PerplexityConfig(model=row["training"]["checkpoint"], lengths=LENGTHS, documents=2)
            )
            assert written["method"] == method and written["points"] == row["perplexity"]
