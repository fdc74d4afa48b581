"""``finetune --dry-run``: estimates what the run would need, without loading a weight or writing a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.forward import LOGITS_PER_CHUNK
from ropectl.hf.config.source import source_config
from ropectl.memory import free_memory
from ropectl.records import SCHEMA_VERSION, to_json
from ropectl.reporter import Reporter
from ropectl.runs import command_line, package_versions
from ropectl.train.data.sample_kinds import CYCLE
from ropectl.train.data.samples import TrainingData
from ropectl.train.engine.accelerator import describe_engine
from ropectl.train.estimate.cost import Arithmetic
from ropectl.train.estimate.memory import TrainingSetup, Weights, device_total, levers, memory_parts
from ropectl.train.estimate.request import Sketch, make_setup, rough_reasons, with_lora
from ropectl.train.estimate.skeleton import count_weights
from ropectl.train.estimate.step_time import arithmetic_of, measure_steps, time_of_run, with_chunk
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies import make_strategy
from ropectl.train.task import Task


def dry_run(task: Task, data: TrainingData, accelerator: Any, reporter: Reporter) -> dict[str, Any]:
    """Returns the estimate of a run. No weight is loaded; every rank must call it.

    Args:
        task: What was asked for, checked.
        data: Its sequences.
        accelerator: The Accelerator, as its launcher set it up.
        reporter: Shows progress.
    """
    settings = task.settings
    reporter.start("estimating")
    free = free_memory(accelerator.device)
    sketch = Sketch(task, accelerator, source_config(task.source, settings.trust_remote_code))
    model = sketch.build(sketch.config, task.strategy, "meta")
    weights = count_weights(model, sketch.shape)
    setup = make_setup(task, accelerator, model)
    chunk = max(1, LOGITS_PER_CHUNK // (sketch.shape.vocabulary * setup.micro_batch))

    def made(reads_hidden: bool) -> tuple[TrainingSetup, Arithmetic]:
        chunked = with_chunk(setup, settings, chunk, reads_hidden)
        return chunked, arithmetic_of(sketch.shape, weights, model, chunked)

    measured, problem = measure_steps(sketch, setup, free, lambda reads_hidden: made(reads_hidden)[1])
    reads_hidden = measured is None or measured.reads_hidden
    setup, arithmetic = made(reads_hidden)
    lengths = _lengths(data, settings)
    record = {
        "schema_version": SCHEMA_VERSION,
        "estimate": True,
        "model": task.source.name,
        "method": str(task.plan.method),
        "derived": task.derived(),
        "seq_len": task.seq_len,
        "target_length": task.target_length,
        "parameters": {
            "total": weights.total,
            "trained": weights.trained,
            "strategy": settings.strategy,
            "trained_parts": weights.parts,
        },
        "data": _data(data, settings, lengths),
        "flops": _flops(arithmetic, settings, lengths),
        "memory": _memory(sketch, weights, setup, chunk if reads_hidden else 0, free),
        "time": time_of_run(task, weights, setup, arithmetic, measured, lengths, problem),
        "rough": rough_reasons(sketch.shape, weights, settings),
        "engine": to_json(describe_engine(accelerator)),
        "settings": settings.model_dump(mode="json"),
        "versions": package_versions(),
        "command": command_line(),
    }
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return record


def _lengths(data: TrainingData, settings: FinetuneSettings) -> list[int]:
    """Returns the tokens of the first sequences; among ``CYCLE`` of them every kind has its share."""
    count = min(settings.steps * settings.batch_size, CYCLE)
    return [len(data.sample(index).input_ids) for index in range(count)]


def _data(data: TrainingData, settings: FinetuneSettings, lengths: Sequence[int]) -> dict[str, Any]:
    sequences, mean = settings.steps * settings.batch_size, sum(lengths) / len(lengths)
    text = sequences * (1 - settings.short_fraction - settings.passkey_fraction)
    return {
        "blocks": data.num_blocks,
        "sequences": sequences,
        "epochs": round(text / data.num_blocks, 3),
        "steps": settings.steps,
        "sequences_per_step": settings.batch_size,
        "tokens_per_step": round(settings.batch_size * mean),
        "tokens": round(sequences * mean),
    }


def _flops(arithmetic: Arithmetic, settings: FinetuneSettings, lengths: Sequence[int]) -> dict[str, float]:
    mean = sum(arithmetic.cost(length).total for length in lengths) / len(lengths)
    return {
        "per_token": mean * len(lengths) / sum(lengths),
        "per_step": mean * settings.batch_size,
        "total": mean * settings.batch_size * settings.steps,
    }


def _memory(sketch: Sketch, weights: Weights, setup: TrainingSetup, chunk: int, free: int | None) -> dict[str, Any]:
    task, parts = sketch.task, memory_parts(sketch.shape, weights, setup)
    total = device_total(parts)
    counted, lora = {setup.strategy: weights}, None
    if setup.strategy != "lora" and (lora_weights := _lora_weights(sketch)) is not None:
        lora, counted["lora"] = with_lora(setup, task.settings), lora_weights
    options = levers(
        setup,
        chunk=chunk,
        trained_length=task.plan.geometry.original_max_position_embeddings,
        can_pose=task.settings.positions == "contiguous" and task.settings.packing != "isolated",
        lora=lora,
    )
    needs = {
        flags: device_total(memory_parts(sketch.shape, counted[changed.strategy], changed))
        for flags, changed in options.items()
    }
    return {
        "unit": "bytes",
        "devices": setup.ranks,
        "parts": parts,
        "total": total,
        "free": free,
        "fits": _fits(total, free),
        "levers": [{"flags": flags, "total": need, "fits": _fits(need, free)} for flags, need in needs.items()],
    }


def _lora_weights(sketch: Sketch) -> Weights | None:
    """Returns the counts with LoRA; None where peft is not installed or cannot train this class."""
    try:
        strategy = make_strategy(sketch.task.settings.model_copy(update={"strategy": "lora"}))
        return count_weights(sketch.build(sketch.config, strategy, "meta"), sketch.shape)
    except ConfigError:
        return None


def _fits(total: int, free: int | None) -> bool | None:
    return None if free is None else total <= free
