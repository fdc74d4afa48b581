"""``finetune --dry-run``: estimates what the run would need, without loading a weight or writing a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.cost import ForwardCost
from ropectl.evaluate.forward import LOGITS_PER_CHUNK
from ropectl.hf.config.source import source_config
from ropectl.hf.model.model_class import cut
from ropectl.hf.model_shape import ModelShape
from ropectl.memory import free_memory, is_out_of_memory
from ropectl.records import SCHEMA_VERSION, to_json
from ropectl.reporter import Reporter
from ropectl.runs import command_line, package_versions
from ropectl.train.data.sample_kinds import CYCLE
from ropectl.train.data.samples import TrainingData
from ropectl.train.engine.accelerator import describe_engine
from ropectl.train.estimate.calibration import FIRST_LENGTH, calibrate
from ropectl.train.estimate.cost import Arithmetic, Timing, seconds_per_step
from ropectl.train.estimate.memory import TrainingSetup, Weights, device_total, levers, memory_parts
from ropectl.train.estimate.request import Sketch, make_setup, rough_reasons, with_lora
from ropectl.train.estimate.skeleton import count_weights
from ropectl.train.settings import FinetuneSettings
from ropectl.train.strategies import make_strategy
from ropectl.train.task import Task

_TOO_SMALL = "memory is too small for two layers"


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
    timing, reads_hidden, problem = _timing(sketch, setup, free)
    chunk = max(1, LOGITS_PER_CHUNK // (sketch.shape.vocabulary * setup.micro_batch)) if reads_hidden else 0
    wanted = chunk if settings.loss_chunk is None else settings.loss_chunk if reads_hidden else 0
    setup = replace(setup, loss_chunk=min(wanted, setup.seq_len))
    arithmetic = _arithmetic(sketch.shape, weights, model, setup)
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
        "memory": _memory(sketch, weights, setup, chunk, free),
        "time": _time(task, weights, setup, arithmetic, timing, lengths, problem),
        "rough": rough_reasons(sketch.shape, weights, settings),
        "engine": to_json(describe_engine(accelerator)),
        "settings": settings.model_dump(mode="json"),
        "versions": package_versions(),
        "command": command_line(),
    }
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return record


def _timing(sketch: Sketch, setup: TrainingSetup, free: int | None) -> tuple[Timing | None, bool, str]:
    """Returns the calibration; where it is not possible, the reason."""
    task, accelerator = sketch.task, sketch.accelerator

    def make(num_layers: int) -> Any:
        return sketch.build(cut(sketch.config, num_layers), task.strategy, accelerator.device)

    try:
        fits = _two_layers_fit(sketch, setup, free)
        if not fits(min(FIRST_LENGTH, setup.seq_len)):
            return None, True, _TOO_SMALL
        timing, reads_hidden = calibrate(make, accelerator, setup, task.settings, fits)
    except ConfigError as error:
        return None, True, error.message
    except (RuntimeError, MemoryError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        # A class may refuse one or two layers in many ways; memory and arithmetic are reported anyway.
        return None, True, _TOO_SMALL if is_out_of_memory(error) else f"two layers do not run: {error}"
    return timing, reads_hidden, ""


def _two_layers_fit(sketch: Sketch, setup: TrainingSetup, free: int | None) -> Callable[[int], bool]:
    """Returns a test whether two layers with whole logits fit on one device at a length: some systems kill what does not."""
    weights = count_weights(sketch.build(cut(sketch.config, 2), sketch.task.strategy, "meta"), sketch.shape)
    shape = replace(sketch.shape, num_layers=2)
    single = replace(setup, ranks=1, sharded=False, cp_size=1, loss_chunk=0)

    def fits(length: int) -> bool:
        return free is None or device_total(memory_parts(shape, weights, replace(single, seq_len=length))) <= free

    return fits


def _arithmetic(shape: ModelShape, weights: Weights, model: Any, setup: TrainingSetup) -> Arithmetic:
    head = model.get_output_embeddings().weight
    return Arithmetic(
        forward=ForwardCost.of_weights(weights.layers, head.numel(), shape),
        num_layers=shape.num_layers,
        layers_trained=weights.layers_trained / max(1, weights.layers),
        head_trained=head.requires_grad,
        recomputes=setup.checkpointing != "off",
        chunked=0 < setup.loss_chunk < setup.seq_len,
    )


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
    mean = sum(map(arithmetic.total, lengths)) / len(lengths)
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


def _time(
    task: Task,
    weights: Weights,
    setup: TrainingSetup,
    arithmetic: Arithmetic,
    timing: Timing | None,
    lengths: Sequence[int],
    problem: str,
) -> dict[str, Any]:
    if timing is None:
        return {"seconds_per_step": None, "seconds": None, "tokens_per_second": None, "reason": problem}
    settings = task.settings
    data_ranks = setup.ranks // setup.cp_size
    step = seconds_per_step(
        timing, arithmetic, lengths,
        micro_batch=setup.micro_batch,
        micro_batches=-(-settings.batch_size // (setup.micro_batch * data_ranks)),
        trained=weights.trained / (setup.ranks if setup.sharded else 1),
        cp_size=setup.cp_size,
    )  # fmt: skip
    return {
        "seconds_per_step": step,
        "seconds": step * settings.steps,
        "tokens_per_second": settings.batch_size * sum(lengths) / len(lengths) / step,
        "calibration": {
            "length": timing.length,
            "one_layer_seconds": timing.one,
            "two_layers_seconds": timing.two,
            "optimizer_seconds": timing.optimizer,
            "optimizer_parameters": timing.trained,
        },
        "left_out": ["validation", "saving"] + (["exchange between devices"] if setup.ranks > 1 else []),
    }
