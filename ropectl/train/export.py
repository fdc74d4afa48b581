"""From trained weights to a checkpoint as ``patch`` writes it.

The weights are put into a model that is loaded anew, on the CPU, whatever engine trained them: what is written
depends on nothing but the source and what was trained, and nothing that was trained can be left out unseen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ropectl.checkpoint.plan import PatchPlan
from ropectl.checkpoint.settings import PatchSettings
from ropectl.checkpoint.weights import copy_other_files, save_model, written_dtype
from ropectl.checkpoint.writing import stage_adapter, stage_checkpoint
from ropectl.errors import ConfigError, TrainingError
from ropectl.hf.config.source import ModelSource
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.reporter import Reporter
from ropectl.train.engine.engine import load_weights
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies.strategy import Strategy


def check_base(source: ModelSource, strategy: Strategy) -> None:
    """Checks that an adapter that is kept has a checkpoint to belong to.

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
    settings: FinetuneSettings,
    patch: PatchSettings,
    plan: PatchPlan,
    strategy: Strategy,
    weights: Mapping[str, Any],
    training: Mapping[str, Any],
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Writes the result and returns its record.

    Args:
        settings: What was asked for.
        patch: The same, as ``patch`` takes it.
        plan: The scaling.
        strategy: How weights were trained.
        weights: The trained weights by name.
        training: What the record says of the training.
        note: Told what was validated.

    Raises:
        TrainingError: If a tensor is empty or missing in what was written.
    """
    assert settings.out is not None
    source = plan.source
    names = ("trust_remote_code", "allow_pickle")
    flags = {name: getattr(settings, name) for name in names}
    dtype = written_dtype(source, settings.save_dtype)
    options = LoadOptions(dtype="float32", device="cpu", **flags)

    def write(aside: Path) -> dict[str, Any]:
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
            # Not their number: some families divide or join tensors when they are written.
            expected = {"num_bytes": sum(p.numel() * p.element_size() for p in merged.parameters())}
        count, size = validate_files(aside, **expected)
        note(f"Validated {count} tensors, {size:,} bytes.")
        return {"rewritten": True, "num_tensors": count, "num_bytes": size}

    extra = {"training": dict(training)}
    if strategy.keeps_adapter:
        return stage_adapter(patch, plan, settings.out, write, extra)
    return stage_checkpoint(patch, plan, settings.out, write, Reporter(), options=options, extra=extra)


def _base_name(source: ModelSource) -> str:
    is_local = Path(source.location).is_dir() and not source.name.startswith("builtin:")
    return str(Path(source.location).resolve()) if is_local else source.name


def validate_files(folder: Path, num_tensors: int = 1, num_bytes: int = 1) -> tuple[int, int]:
    """Returns number and bytes of the tensors in a folder, having checked each by its header.

    Args:
        folder: A checkpoint or an adapter.
        num_tensors: How many tensors there have to be at least.
        num_bytes: How many bytes they have to take at least.

    Raises:
        TrainingError: If a tensor is empty, a file is shorter than it says, or tensors are missing.
    """
    count = size = 0
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="np") as file:  # opening checks offsets against the length of the file
                parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (it is not a dictionary)
                headers = {name: (part.get_shape(), part.get_dtype()) for name, part in parts.items()}
        except SafetensorError as error:
            raise TrainingError(f"{path.name} is not whole: {error}.", "Is the disk full?") from None
        for name, (shape, dtype) in headers.items():
            if math.prod(shape) == 0:
                raise TrainingError(f"{path.name}: the tensor {name} has shape {shape}: nothing was saved of it.")
            size += math.prod(shape) * _BYTES[dtype]
        count += len(headers)
    if count < num_tensors or size < num_bytes:
        raise TrainingError(
            f"What was written holds {count} tensors and {size:,} bytes; expected are at least {num_tensors} and {num_bytes:,}."
        )
    return count, size


_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
