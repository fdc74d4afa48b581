"""Runs a comparison: missing cells are measured, finished ones read, and the rows put together from records."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropectl.compare.plan import DEFAULT_FACTOR, choose_lengths, choose_methods, document_notes
from ropectl.compare.rows import method_rows
from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.reach import pick_method
from ropectl.evaluate.reporter import Reporter, SilentReporter
from ropectl.evaluate.setup import Setup
from ropectl.hf.fingerprint import model_fingerprint
from ropectl.hf.loading import resolve_device
from ropectl.hf.source import ModelSource
from ropectl.records import SCHEMA_VERSION, MethodRow, to_json
from ropectl.rope.method import short_spec
from ropectl.runs import RunFolder, check_writable, command_line, content_id, package_versions, write_json

if TYPE_CHECKING:
    from ropectl.compare.cells import Cell

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
    """

    record: dict[str, Any]
    folder: Path
    num_failed: int

    @property
    def regressed(self) -> bool:
        """Whether the pick costs more up to the trained length than ``max_short_regression`` allows."""
        limit, pick = self.record["manifest"]["config"]["max_short_regression"], self.record["pick"]
        if limit is None or pick is None:
            return False
        delta = next(row["short_delta"] for row in self.record["rows"] if row["method"] == pick["method"])
        return delta is not None and delta > limit


def compare_methods(
    config: CompareConfig | None = None, out: Path | str | None = None, reporter: Reporter | None = None
) -> Comparison:
    """Measures methods side by side on one model and text; the unscaled baseline is always among them.

    Cells that ``out`` already holds with the same settings are not measured again.

    Args:
        config: What to compare; by default every method at factor 4 on ``builtin:tiny`` and ``builtin:stdlib``.
        out: Run folder; by default one under ``ropectl-runs`` named after model and settings.
        reporter: Told about progress and notes.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or CompareConfig(), reporter or SilentReporter()
    if config.factor is None and config.target_length is None and not config.methods:
        config = config.model_copy(update={"factor": DEFAULT_FACTOR})
    setup = Setup.of(config)
    methods, notes = choose_methods(setup, config)
    builder = PasskeyPromptBuilder(setup.tokenizer, setup.bos_token_id, config.seed, config.distractors)
    lengths, more_notes = choose_lengths(setup, config, methods, builder.min_length if config.passkey else 2)
    documents = setup.documents(lengths)
    more_notes += [
        *document_notes(documents, lengths, config.text),
        *setup.window_notes(lengths),
        *setup.attention_notes(lengths),
    ]
    for note in (*notes, *more_notes):
        reporter.note(note)
    from ropectl.compare.cells import CellFactory  # torch loads here, after every check that needs none

    factory = CellFactory(config, setup.source.rope, documents, builder, lengths, _common_settings(setup))
    cells = [cell for method in methods for cell in factory.cells(method)]
    folder = RunFolder(Path(out) if out else _default_folder(setup.source, cells))
    records = _measure(cells, folder, setup, reporter)
    rows = method_rows(methods, cells, records, setup.geometry, config)
    record = _document(setup, config, lengths, documents, rows, cells, records, factory.num_targets)
    _keep_other(folder.path / COMPARISON_FILE, record, reporter)
    write_json(folder.path / COMPARISON_FILE, record)
    return Comparison(record, folder.path, sum("error" in entry for entry in records))


def _keep_other(path: Path, record: dict[str, Any], reporter: Reporter) -> None:
    """Puts an earlier comparison of other settings in the same folder aside, under a name of its own."""
    try:
        earlier = json.loads(path.read_text())["manifest"]["config"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if earlier != record["manifest"]["config"]:
        aside = path.with_name(f"{path.stem}-{content_id(earlier)[:8]}{path.suffix}")
        path.replace(aside)
        reporter.note(f"{path} held another comparison; it is now {aside.name}.")


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


def _default_folder(source: ModelSource, cells: Sequence[Cell]) -> Path:
    name = source.name.replace(":", "-").rstrip("/").split("/")[-1]
    return Path(RUNS_FOLDER) / f"compare-{name}-{content_id([cell.settings for cell in cells])[:8]}"


def _measure(cells: Sequence[Cell], folder: RunFolder, setup: Setup, reporter: Reporter) -> list[dict[str, Any]]:
    """Returns the records of all cells, having measured those that were missing."""
    finished = {id(cell): folder.read_cell(cell.settings) for cell in cells}
    missing = [cell for cell in cells if finished[id(cell)] is None]
    if len(missing) < len(cells):
        reporter.note(f"{len(cells) - len(missing)} of {len(cells)} cells are already in {folder.path}.")
    if missing:
        check_writable(folder.path)
        model = setup.model
        reporter.start(sum(cell.tokens for cell in missing))
        for cell in missing:
            reporter.cell(short_spec(cell.method), f"{cell.kind} {cell.length}")
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


def _document(
    setup: Setup,
    config: CompareConfig,
    lengths: list[int],
    documents: Any,
    rows: list[MethodRow],
    cells: Sequence[Cell],
    records: Sequence[dict[str, Any]],
    num_targets: int,
) -> dict[str, Any]:
    pick = pick_method(rows)
    return {
        "schema_version": SCHEMA_VERSION,
        "model": config.model,
        "geometry": setup.geometry.to_json(),
        "factor": setup.factor,
        "text": config.text,
        "protocol": "prefix",
        "lengths": lengths,
        "rows": [to_json(row) for row in rows],
        "pick": to_json(pick) if pick else None,
        "manifest": {
            "command": command_line(),
            "config": config.model_dump(mode="json"),
            "versions": package_versions(),
            "bos_token_id": setup.bos_token_id,
            "documents": [document.name for document in documents.documents],
            "tokens_sha256": documents.fingerprint(),
            "tail_targets_per_document": num_targets,
            "cells": [
                {"id": record["id"], "method": cell.method, "kind": cell.kind, "length": cell.length}
                for cell, record in zip(cells, records, strict=True)
            ],
        },
    }
