"""Runs a comparison: missing cells are measured, finished ones read, and the rows put together from records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.compare.document import comparison_document, keep_other
from ropectl.compare.plan import DEFAULT_FACTOR, choose_lengths, choose_methods, comparison_target, document_notes
from ropectl.compare.recipe import read_recipe
from ropectl.compare.rows import Measured
from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.reporter import Reporter, SilentReporter
from ropectl.evaluate.setup import Setup
from ropectl.hf.fingerprint import model_fingerprint
from ropectl.hf.loading import resolve_device
from ropectl.hf.source import ModelSource
from ropectl.rope.method import ScalingMethod
from ropectl.runs import RunFolder, check_writable, content_id, package_versions, write_json

if TYPE_CHECKING:
    from ropectl.compare.cells import Cell
    from ropectl.compare.training import Training

RUNS_FOLDER = "ropectl-runs"
#: A record is used again only under the same versions of these.
DECIDING_PACKAGES = ("ropectl", "torch", "transformers", "tokenizers")
COMPARISON_FILE = "comparison.json"


@dataclass(frozen=True)
class Comparison:
    """A finished comparison.

    Attributes:
        record: The JSON document, as written to ``comparison.json``.
        folder: The run folder.
        num_failed: Cells that ended in an error.
        num_untrained: Trainings that did.
    """

    record: dict[str, Any]
    folder: Path
    num_failed: int
    num_untrained: int = 0

    @property
    def regressed(self) -> bool:
        """Whether the pick costs more up to the trained length than ``max_short_regression`` allows."""
        limit, pick = self.record["manifest"]["config"]["max_short_regression"], self.record["pick"]
        if limit is None or pick is None:
            return False
        chosen = (pick["method"], pick["training"])
        delta = next(row["short_delta"] for row in self.record["rows"] if (row["method"], _training_id(row)) == chosen)
        return delta is not None and delta > limit


def _training_id(row: dict[str, Any]) -> str | None:
    return row["training"]["id"] if row["training"] else None


def compare_methods(
    config: CompareConfig | None = None, out: Path | str | None = None, reporter: Reporter | None = None
) -> Comparison:
    """Measures methods side by side on one model and text; the unscaled baseline is always among them.

    With ``config.finetune`` every method is also trained, each from the same model, seed and tokens, and measured
    again with the weights it got. Trainings and cells that ``out`` already holds with the same settings are not
    repeated; one that was interrupted goes on.

    Args:
        config: What to compare; by default every method at factor 4 on ``builtin:tiny`` and ``builtin:stdlib``.
        out: Run folder; by default one under ``ropectl-runs`` named after model and settings.
        reporter: Told about progress and notes; and about the steps of trainings if it is a
            :class:`~ropectl.compare.reporter.TrainingListener`.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or CompareConfig(), reporter or SilentReporter()
    recipe = read_recipe(config)
    if config.factor is None and config.target_length is None and not config.methods:
        config = config.model_copy(update={"factor": DEFAULT_FACTOR})
    setup = Setup.of(config)
    methods, notes = choose_methods(setup, config)
    builder = PasskeyPromptBuilder(setup.tokenizer, setup.bos_token_id, config.seed, config.distractors)
    lengths, more_notes = choose_lengths(setup, config, methods, builder.min_length if config.passkey else 2)
    documents = setup.documents(lengths)
    more_notes += [*document_notes(documents, lengths, config.text), *setup.window_notes(lengths)]
    for note in (*notes, *more_notes, *setup.attention_notes(lengths)):
        reporter.note(note)
    from ropectl.compare.cells import CellFactory  # torch loads here, after every check that needs none

    factory = CellFactory(config, setup.source.rope, documents, builder, lengths, _common_settings(setup))
    cells = {method: factory.cells(method) for method in methods}
    trainings: list[Training] = []
    if recipe is not None:
        from ropectl.compare.training import plan_trainings

        trainings = plan_trainings(recipe, setup, methods, comparison_target(setup, config, methods), reporter)
    folder = RunFolder(Path(out) if out else _default_folder(setup.source, cells.values(), trainings))
    trainings = [training.placed(folder.path) for training in trainings]
    measured = _measure_all(cells, trainings, folder, setup, reporter)
    record = comparison_document(setup, config, recipe, lengths, documents, measured, factory.num_targets)
    keep_other(folder.path / COMPARISON_FILE, record, reporter)
    write_json(folder.path / COMPARISON_FILE, record)
    num_failed = sum("error" in cell for entry in measured for cell in entry.records)
    return Comparison(record, folder.path, num_failed, sum(bool(entry.errors) for entry in measured))


def _measure_all(
    cells: Mapping[ScalingMethod, list[Cell]],
    trainings: Sequence[Training],
    folder: RunFolder,
    setup: Setup,
    reporter: Reporter,
) -> list[Measured]:
    """Measures the model as it is given under every method, then trains and measures one method after the other."""
    records = iter(_measure([cell for own in cells.values() for cell in own], folder, setup, reporter))
    plain = {method: Measured(method, own, [next(records) for _ in own]) for method, own in cells.items()}
    setup.release()
    tuned: dict[ScalingMethod, Measured] = {}
    for number, training in enumerate(trainings, 1):
        tuned[training.method] = _train_and_measure(
            training, f"{number} of {len(trainings)}", cells[training.method], folder, setup, reporter
        )
    both = ((plain[method], tuned.get(method)) for method in cells)
    return [entry for pair in both for entry in pair if entry is not None]


def _train_and_measure(
    training: Training, place: str, cells: Sequence[Cell], folder: RunFolder, setup: Setup, reporter: Reporter
) -> Measured:
    from ropectl.compare.training import run_training

    done = training.finished() is not None
    reporter.note(f"{training.label}, training {place}" + (f": {training.out} is its finished result." if done else ""))
    error = run_training(training, reporter)
    if error is not None:
        return Measured(training.method, training=training.summary(), errors=[f"training: {error}"])
    tuned = training.tuned_setup(setup)
    own = [cell.after(training.id, training.cell_settings(tuned)) for cell in cells]
    records = _measure(own, folder, tuned, reporter)
    return Measured(training.method, own, records, training.summary(), training.covered)


def _common_settings(setup: Setup) -> dict[str, Any]:
    config, source = setup.config, setup.source
    device = resolve_device(config.device)
    versions = {name: value for name, value in package_versions().items() if name in DECIDING_PACKAGES}
    return {
        "model": config.model,
        "model_fingerprint": model_fingerprint(source),
        "revision": config.revision,
        "geometry": source.rope.geometry.to_json(),
        "layers": source.rope.layer_type,
        "dtype": config.dtype,
        "device": device.type,
        "attention": config.attention,
        "trust_remote_code": config.trust_remote_code,
        "bos_token_id": setup.bos_token_id,
        "prefill_chunk": config.prefill_chunk,
        "versions": versions,
    }


def _default_folder(source: ModelSource, cells: Iterable[Sequence[Cell]], trainings: Sequence[Training]) -> Path:
    name = source.name.replace(":", "-").rstrip("/").split("/")[-1]
    settings = [cell.settings for own in cells for cell in own] + [training.identity for training in trainings]
    return Path(RUNS_FOLDER) / f"compare-{name}-{content_id(settings)[:8]}"


def _measure(cells: Sequence[Cell], folder: RunFolder, setup: Setup, reporter: Reporter) -> list[dict[str, Any]]:
    """Returns the records of all cells, having measured those that were missing."""
    finished = {id(cell): folder.read_cell(cell.settings) for cell in cells}
    missing = [cell for cell in cells if finished[id(cell)] is None]
    if len(missing) < len(cells) and cells[0].training is None:
        reporter.note(f"{len(cells) - len(missing)} of {len(cells)} cells are already in {folder.path}.")
    if missing:
        check_writable(folder.path)
        model = setup.model
        reporter.start(sum(cell.tokens for cell in missing))
        for cell in missing:
            reporter.cell(cell.label, f"{cell.kind} {cell.length}")
            finished[id(cell)] = folder.write_cell(cell.settings, _outcome(cell, model, reporter.advance))
    return [record for record in (finished[id(cell)] for cell in cells) if record is not None]


def _outcome(cell: Cell, model: Any, progress: Callable[[int], None]) -> dict[str, Any]:
    """Measures one cell; what goes wrong in it is its result, and the grid goes on."""
    started = time.perf_counter()
    try:
        outcome: dict[str, Any] = {"result": cell.measure(model, progress)}
    except Exception as error:  # whatever a model raises in one cell must not cost the others
        outcome = {"error": {"type": type(error).__name__, "message": str(error)}}
    return {**outcome, "seconds": round(time.perf_counter() - started, 3)}
