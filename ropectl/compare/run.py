"""Runs a comparison: missing cells are measured, finished ones read, and the rows put together from records."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropectl.compare.cells import Cell, CellFactory
from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.errors import ConfigError, RopectlError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.reach import FEW_DOCUMENTS, models_length, pick_method, short_delta, uses_length
from ropectl.evaluate.reporter import Reporter, SilentReporter
from ropectl.evaluate.setup import Setup, default_lengths
from ropectl.hf.loading import ModelSource
from ropectl.records import SCHEMA_VERSION, MethodRow, PerplexityPoint, Reach, passkey_length_from_json, to_json
from ropectl.rope.frequencies import reach_tokens
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import ScalingMethod
from ropectl.rope.methods.none import NoScaling
from ropectl.rope.notes import method_notes
from ropectl.rope.registry import all_methods
from ropectl.runs import RunFolder, command_line, content_id, package_versions, write_json

DEFAULT_FACTOR = 4.0
RUNS_FOLDER = "ropectl-runs"
COMPARISON_FILE = "comparison.json"

_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf")


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
    methods = choose_methods(setup, config, reporter)
    lengths = choose_lengths(setup, config, methods, reporter)
    builder = PasskeyPromptBuilder(setup.tokenizer, setup.bos_token_id, config.seed, config.distractors)
    if config.passkey and min(lengths) < builder.min_length:
        raise ConfigError(
            f"length = {min(lengths)} tokens is too short for a passkey prompt, which takes {builder.min_length} with this tokenizer.",
            f"Use lengths of at least {builder.min_length}, or --no-passkey.",
        )
    documents = setup.documents(lengths)
    _note_documents(documents.length, len(documents.documents), lengths, config.text, reporter)
    factory = CellFactory(config, setup.geometry, documents, builder, lengths, _common_settings(setup))
    cells = [cell for method in methods for cell in factory.cells(method)]
    folder = RunFolder(Path(out) if out else _default_folder(setup.source, cells))
    records = _measure(cells, folder, setup, reporter)
    rows = _rows(methods, cells, records, setup.geometry, config)
    record = _document(setup, config, lengths, documents, rows, cells, records, factory.num_targets)
    write_json(folder.path / COMPARISON_FILE, record)
    return Comparison(record, folder.path, sum("error" in entry for entry in records))


def choose_methods(setup: Setup, config: CompareConfig, reporter: Reporter) -> list[ScalingMethod]:
    """Returns the methods to compare, the unscaled baseline first, each once."""
    baseline = NoScaling()
    if config.methods:
        chosen = [setup.method(spec) for spec in config.methods]
    else:
        chosen = []
        for name, kind in all_methods().items():
            missing = kind.missing(kind.fill_factor({}, setup.factor or DEFAULT_FACTOR, setup.geometry))
            if missing:
                reporter.note(
                    f"{name} is not compared: it needs {', '.join(missing)}. To include it: -m {name}:{missing[0]}=..."
                )
            else:
                chosen.append(setup.method(name))
    existing = setup.source.rope.method
    if existing.name != "none" and existing not in chosen:
        chosen.insert(0, existing)
    for method in chosen:
        for note in method_notes(method, setup.geometry, seq_len=setup.trained_length):
            reporter.note(note)
    return list(dict.fromkeys([baseline, *chosen]))


def choose_lengths(
    setup: Setup, config: CompareConfig, methods: Sequence[ScalingMethod], reporter: Reporter
) -> list[int]:
    """Returns the lengths to compare at; one up to the trained length is always among them."""
    trained = setup.trained_length
    if not config.lengths:
        target = config.target_length or max(
            method.target_length(setup.geometry) for method in methods if hasattr(method, "factor")
        )
        return default_lengths(trained, target)
    lengths = sorted(set(config.lengths))
    if trained not in lengths:
        reporter.note(f"The trained length {trained} is measured too: verdicts are made against it.")
        lengths = sorted([*lengths, trained])
    return lengths


def _note_documents(longest: int, count: int, lengths: Sequence[int], text: str, reporter: Reporter) -> None:
    missing = [str(length) for length in lengths if length > longest]
    if missing:
        reporter.note(f"{text} has no document of {', '.join(missing)} tokens: perplexity there is n/a.")
    if count < FEW_DOCUMENTS:
        reporter.note(
            f"Only {count} document{'s' if count > 1 else ''} of {text} reach {longest} tokens: few for a verdict (at least {FEW_DOCUMENTS})."
        )


def _common_settings(setup: Setup) -> dict[str, Any]:
    from ropectl.hf.loading import resolve_device

    config, source = setup.config, setup.source
    device = resolve_device(config.device)
    versions = {name: value for name, value in package_versions().items() if name in ("torch", "transformers")}
    return {
        "model": config.model,
        "model_fingerprint": model_fingerprint(source),
        "revision": config.revision,
        "geometry": vars(source.rope.geometry),
        "dtype": config.dtype,
        "device": device.type,
        "attention": config.attention,
        "bos_token_id": setup.bos_token_id,
        "prefill_chunk": config.prefill_chunk,
        "versions": versions,
    }


def model_fingerprint(source: ModelSource) -> str:
    """Returns a hash that changes when the checkpoint does: config, and names, sizes and times of weight files."""
    folder = Path(source.location)
    files: list[tuple[str, int, int]] = []
    if folder.is_dir():
        names = (
            [source.gguf_file]
            if source.gguf_file
            else sorted(path.name for path in folder.iterdir() if path.suffix in _WEIGHT_SUFFIXES)
        )
        # The built-in model is fixed by the package; its files' times change with every installation.
        stats = [(name, (folder / name).stat()) for name in names]
        builtin = source.name.startswith("builtin:")
        files = [(name, stat.st_size, 0 if builtin else stat.st_mtime_ns) for name, stat in stats]
    text = content_id({"config": dict(source.config), "files": files})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
        model = setup.model
        reporter.start(sum(cell.tokens for cell in missing))
        for cell in missing:
            reporter.cell(f"{cell.method} {cell.kind} {cell.length}")
            finished[id(cell)] = folder.write_cell(cell.settings, _outcome(cell, model, reporter.advance))
    return [record for record in (finished[id(cell)] for cell in cells) if record is not None]


def _outcome(cell: Cell, model: Any, progress: Callable[[int], None]) -> dict[str, Any]:
    """Measures one cell; what goes wrong in it is its result, and the grid goes on."""
    started = time.perf_counter()
    try:
        outcome: dict[str, Any] = {"result": cell.measure(model, progress)}
    except (RopectlError, RuntimeError, ArithmeticError) as error:  # RuntimeError: torch, out of memory included
        outcome = {"error": {"type": type(error).__name__, "message": str(error)}}
    return {**outcome, "seconds": round(time.perf_counter() - started, 3)}


def _rows(
    methods: Sequence[ScalingMethod],
    cells: Sequence[Cell],
    records: Sequence[dict[str, Any]],
    geometry: RopeGeometry,
    config: CompareConfig,
) -> list[MethodRow]:
    by_method: dict[str, list[tuple[Cell, dict[str, Any]]]] = {}
    for cell, record in zip(cells, records, strict=True):
        by_method.setdefault(cell.method, []).append((cell, record))
    trained = geometry.original_max_position_embeddings
    baseline = by_method[str(methods[0])]
    base_prefix, base_tail = _points(baseline, "prefix"), _points(baseline, "tail")
    base_at_trained = next((point for point in base_tail if point.context_length == trained), None)
    rows = []
    for method in methods:
        own = by_method[str(method)]
        prefix, tail = _points(own, "prefix"), _points(own, "tail")
        passkey = [passkey_length_from_json(r["result"]) for cell, r in own if cell.kind == "passkey" and "result" in r]
        complete = all("result" in record for cell, record in own if cell.kind == "passkey")
        reach = Reach(
            computes=_computes(method, geometry, [cell.length for cell, _ in own]),
            models=models_length(tail, base_at_trained, config.tolerance),
            uses=uses_length(passkey, config.min_accuracy) if complete else None,
        )
        errors = [f"{cell.kind} {cell.length}: {r['error']['message']}" for cell, r in own if "error" in r]
        seconds = round(sum(record["seconds"] for _, record in own), 3)
        rows.append(
            MethodRow(
                str(method), prefix, tail, passkey, reach, short_delta(prefix, base_prefix, trained), seconds, errors
            )
        )
    return rows


def _points(entries: Sequence[tuple[Cell, dict[str, Any]]], kind: str) -> list[PerplexityPoint]:
    results = [record["result"] for cell, record in entries if cell.kind == kind and "result" in record]
    return [PerplexityPoint(**point) for result in results for point in result["points"]]


def _computes(method: ScalingMethod, geometry: RopeGeometry, lengths: Sequence[int]) -> int | None:
    """The formula's reach; for a method that follows the length, the longest evaluated length it covers itself."""
    if not method.depends_on_seq_len:
        return reach_tokens(geometry, method.frequencies(geometry))
    reached = geometry.original_max_position_embeddings
    for length in sorted(set(lengths)):
        limit = reach_tokens(geometry, method.frequencies(geometry, length))
        if limit is None or limit >= length:
            reached = max(reached, length)
    return reached


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
        "geometry": vars(setup.geometry),
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
