"""Writes trained weights as a checkpoint, as ``patch`` does.

The weights are put into a model that is loaded again, on the CPU, whatever engine trained them: the result depends
on the source and the trained weights only, and no trained weight can be left out unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ropectl.checkpoint.weights import copy_other_files, save_model, written_dtype
from ropectl.checkpoint.writing import stage_adapter, stage_checkpoint
from ropectl.errors import ConfigError, TrainingError
from ropectl.hf.config.source import ModelSource
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.hf.tensors.safetensors_file import stored_tensors
from ropectl.records import PatchRecord, TrainingRecord, WrittenFiles
from ropectl.reporter import Reporter
from ropectl.train.engine.engine import load_weights
from ropectl.train.strategies.strategy import Strategy
from ropectl.train.task import Task


def check_base(source: ModelSource, strategy: Strategy) -> None:
    """Checks that an adapter has a checkpoint to belong to if it is not merged.

    Raises:
        ConfigError: If the source is itself an adapter, or a GGUF file.
    """
    if strategy.keeps_adapter and (source.adapter is not None or source.gguf_file is not None):
        kind = "an adapter itself" if source.adapter is not None else "a GGUF file"
        raise ConfigError(
            f"--no-merge needs a checkpoint that the adapter can belong to; {source.name} is {kind}.",
            "Make it one first: ropectl patch MODEL -o OUT",
        )


def export(
    task: Task, weights: Mapping[str, Any], training: TrainingRecord, note: Callable[[str], None]
) -> PatchRecord:
    """Writes the result and returns its record.

    Args:
        task: What was asked for.
        weights: The trained weights by name.
        training: What the record says of the training.
        note: Called with what was validated, in words.

    Raises:
        TrainingError: If a tensor is empty or missing in what was written.
    """
    settings, source, strategy = task.settings, task.source, task.strategy
    dtype = written_dtype(source, settings.save_dtype)
    options = LoadOptions("float32", "cpu", settings.trust_remote_code, settings.allow_pickle)

    def write(aside: Path) -> WrittenFiles:
        import torch

        model = load_model(source, options)
        strategy.prepare(model)
        load_weights(model, dict(weights))
        if strategy.keeps_adapter:
            strategy.save_adapter(model, aside, _base_name(source), source.commit or source.revision)
            expected = {"num_tensors": len(weights)}
        else:
            copy_other_files(source, aside, settings.allow_pickle)
            merged = strategy.merged(model).to(getattr(torch, dtype))
            save_model(merged, source, aside, options)
            # Not their number: some families split or join tensors when they are written.
            expected = {"num_bytes": sum(p.numel() * p.element_size() for p in merged.parameters())}
        count, size = validate_files(aside, **expected)
        note(f"Validated {count} tensors, {size:,} bytes.")
        return WrittenFiles(rewritten=True, num_tensors=count, num_bytes=size)

    if strategy.keeps_adapter:
        return stage_adapter(task.patch, task.plan, write, training)
    return stage_checkpoint(task.patch, task.plan, write, Reporter(), training=training)


def _base_name(source: ModelSource) -> str:
    is_local = Path(source.location).is_dir() and not source.name.startswith("builtin:")
    return str(Path(source.location).resolve()) if is_local else source.name


def validate_files(folder: Path, num_tensors: int = 1, num_bytes: int = 1) -> tuple[int, int]:
    """Checks the tensors in a folder by their headers; returns their number and bytes.

    Args:
        folder: A checkpoint or an adapter.
        num_tensors: The fewest tensors that are expected.
        num_bytes: The fewest bytes that are expected.

    Raises:
        TrainingError: If a tensor is empty, a file is shorter than it says, or tensors are missing.
    """
    count = size = 0
    for path in sorted(folder.glob("*.safetensors")):
        try:
            tensors = stored_tensors(path)
        except ConfigError as error:
            raise TrainingError(error.message, "Is the disk full?") from None
        for name, tensor in tensors.items():
            if tensor.num_bytes == 0:
                raise TrainingError(
                    f"{path.name}: the tensor {name} has shape {list(tensor.shape)}: nothing was saved of it."
                )
        size += sum(tensor.num_bytes for tensor in tensors.values())
        count += len(tensors)
    if count < num_tensors or size < num_bytes:
        raise TrainingError(
            f"The written files hold {count} tensors and {size:,} bytes; expected are at least {num_tensors} and {num_bytes:,}."
        )
    return count, size
