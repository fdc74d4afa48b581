"""Describes a run: in notes at its start, and in the record of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.train.data.samples import TrainingData
from ropectl.train.engine.engine import Engine
from ropectl.train.run_state.metrics_file import read_metrics
from ropectl.train.run_state.outcome import result_id
from ropectl.train.run_state.progress import RunProgress
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.strategies.strategy import trained_parameters
from ropectl.train.task import Task


def describe_trained(model: Any) -> str:
    """Returns how much of a model is trained, and by name what is beside LoRA matrices."""
    names = trained_parameters(model)
    trained, total = sum(p.numel() for p in names.values()), sum(p.numel() for p in model.parameters())
    text = f"Training {trained:,} of {total:,} parameters in {len(names)} tensors"
    whole = sorted({name.replace(".modules_to_save.default", "") for name in names if "modules_to_save" in name})
    return f"{text}; beside LoRA matrices: {', '.join(whole)}." if whole else f"{text}."


def describe_tables(task: Task) -> str:
    """Returns the rotary tables that are in force, in one line for logs."""
    geometry, method = task.plan.geometry, task.plan.method
    frequencies = method.frequencies(geometry, task.frozen_at)
    factor = f" x{method.factor:g}" if hasattr(method, "factor") else ""
    frozen = f" frozen at {task.frozen_at}" if method.depends_on_seq_len else ""
    return (
        f"rope: {method.name}{factor}{frozen} orig={geometry.original_max_position_embeddings} "
        f"base={geometry.rope_theta:g} attn={frequencies.attention_factor:.6f}"
    )


def training_record(
    task: Task,
    data: TrainingData,
    engine: Engine,
    progress: RunProgress,
    identity: Mapping[str, Any],
    folder: TrainingFolder,
) -> dict[str, Any]:
    """Returns what the result's record says of its training."""
    lines = read_metrics(folder.metrics)
    validations = {line["step"]: line["validation"] for line in lines if "validation" in line}
    losses = [line["loss"] for line in lines if "loss" in line]
    chosen = progress.best_step if progress.best_step is not None else progress.step
    accelerator = engine.accelerator
    return {
        "id": result_id(task.settings, identity),
        "settings": dict(identity),
        "seq_len": task.seq_len,
        "learning_rate": task.settings.peak_learning_rate,
        "steps": progress.step,
        "step": chosen,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "epochs": round(progress.step * task.settings.batch_size / data.num_blocks, 3),
        "first_loss": losses[0] if losses else None,
        "last_loss": sum(losses[-10:]) / len(losses[-10:]) if losses else None,
        "validation_before": validations.get(0),
        "validation": validations.get(chosen),
        "engine": {
            "kind": accelerator.distributed_type.value,
            "processes": accelerator.num_processes,
            "device": accelerator.device.type,
            "precision": accelerator.mixed_precision if accelerator.mixed_precision != "no" else "fp32",
        },
        "metrics": str(folder.metrics),
    }
