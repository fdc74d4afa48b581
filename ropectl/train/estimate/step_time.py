"""The time of a run, from steps of models of few layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.calibration import layer_counts, part_of
from ropectl.evaluate.cost import ForwardCost
from ropectl.evaluate.short_passes import SHORTEST
from ropectl.hf.model.model_class import cut
from ropectl.hf.model_shape import ModelShape
from ropectl.memory import is_out_of_memory
from ropectl.train.estimate.calibration import StepCalibration, calibrate_steps
from ropectl.train.estimate.cost import Arithmetic, seconds_per_step
from ropectl.train.estimate.memory import TrainingSetup, Weights, device_total, memory_parts
from ropectl.train.estimate.request import Sketch
from ropectl.train.estimate.skeleton import count_weights
from ropectl.train.settings import FinetuneSettings
from ropectl.train.task import Task

_TOO_SMALL = "memory is too small for two layers"


def with_chunk(setup: TrainingSetup, settings: FinetuneSettings, chunk: int, reads_hidden: bool) -> TrainingSetup:
    """Returns the setup with the tokens whose logits are held together; 0 for all, as where the head is not last."""
    wanted = chunk if settings.loss_chunk is None else settings.loss_chunk
    return replace(setup, loss_chunk=min(wanted, setup.seq_len) if reads_hidden else 0)


def measure_steps(
    sketch: Sketch, setup: TrainingSetup, free: int | None, arithmetic: Callable[[bool], Arithmetic]
) -> tuple[StepCalibration | None, str]:
    """Returns the calibration; where it is not possible, the reason."""
    task, accelerator = sketch.task, sketch.accelerator

    def make(num_layers: int) -> Any:
        return sketch.build(cut(sketch.config, num_layers), task.strategy, accelerator.device)

    try:
        one = count_weights(sketch.build(cut(sketch.config, 1), task.strategy, "meta"), sketch.shape)
        # Each trained parameter has a gradient and two moments too, all in float32.
        layer_bytes = max(one.layer_bytes, 16 * one.layers_trained)
        layers = layer_counts(sketch.shape.num_layers, sketch.shape.num_layers * layer_bytes)
        fits = _layers_fit(sketch, setup, free, layers[-1])
        if not fits(min(SHORTEST, setup.seq_len)):
            layers = sorted({1, min(2, sketch.shape.num_layers)})
            fits = _layers_fit(sketch, setup, free, layers[-1])
        if not fits(min(SHORTEST, setup.seq_len)):
            return None, _TOO_SMALL
        return calibrate_steps(make, accelerator, setup, task.settings, arithmetic, layers, fits), ""
    except ConfigError as error:
        return None, error.message
    except (RuntimeError, MemoryError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        # A class may refuse a few layers in many ways; memory and arithmetic are reported anyway.
        return None, _TOO_SMALL if is_out_of_memory(error) else f"few layers do not run: {error}"


def _layers_fit(sketch: Sketch, setup: TrainingSetup, free: int | None, layers: int) -> Callable[[int], bool]:
    """Returns a test whether layers with whole logits fit on one device at a length: some systems kill what does not."""
    weights = count_weights(sketch.build(cut(sketch.config, layers), sketch.task.strategy, "meta"), sketch.shape)
    shape = replace(sketch.shape, num_layers=layers)
    single = replace(setup, ranks=1, sharded=False, cp_size=1, loss_chunk=0)

    def fits(length: int) -> bool:
        return free is None or device_total(memory_parts(shape, weights, replace(single, seq_len=length))) <= free

    return fits


def arithmetic_of(shape: ModelShape, weights: Weights, model: Any, setup: TrainingSetup) -> Arithmetic:
    """Returns the operations of a run's steps."""
    head = model.get_output_embeddings().weight
    return Arithmetic(
        forward=ForwardCost.of_weights(weights.layers, head.numel(), shape),
        num_layers=shape.num_layers,
        layers_trained=weights.layers_trained / max(1, weights.layers),
        head_trained=head.requires_grad,
        recomputes=setup.checkpointing != "off",
        chunked=0 < setup.loss_chunk < setup.seq_len,
    )


def time_of_run(
    task: Task,
    weights: Weights,
    setup: TrainingSetup,
    arithmetic: Arithmetic,
    measured: StepCalibration | None,
    lengths: Sequence[int],
    problem: str,
) -> dict[str, Any]:
    """Returns what the record says of the time of a run.

    Args:
        task: What was asked for.
        weights: The counts of the model.
        setup: The run.
        arithmetic: The operations of its steps.
        measured: The speed of steps; None where it could not be measured.
        lengths: Lengths of the first sequences [tokens].
        problem: Why it could not.
    """
    if measured is None:
        return {"seconds_per_step": None, "seconds": None, "tokens_per_second": None, "reason": problem}
    settings = task.settings
    data_ranks = setup.ranks // setup.cp_size
    speed, optimizer = measured.passes.speed, measured.optimizer
    step = seconds_per_step(
        speed, optimizer.span(weights.trained / (setup.ranks if setup.sharded else 1)), arithmetic, lengths,
        micro_batch=setup.micro_batch,
        micro_batches=-(-settings.batch_size // (setup.micro_batch * data_ranks)),
        cp_size=setup.cp_size,
    )  # fmt: skip
    length = measured.passes.longest
    one, two = (
        speed.seconds(part_of(arithmetic.cost(length, setup.micro_batch), layers, arithmetic.num_layers)).middle
        for layers in (1, 2)
    )
    return {
        "seconds_per_step": step.middle,
        **measured.passes.time_record(step * settings.steps),
        "tokens_per_second": settings.batch_size * sum(lengths) / len(lengths) / step.middle,
        "calibration": {
            "length": length,
            "one_layer_seconds": one,
            "two_layers_seconds": two,
            "optimizer_seconds": median(optimizer.seconds),
            "optimizer_parameters": optimizer.trained,
            **measured.passes.to_json(),
        },
        "left_out": ["validation", "saving"] + (["exchange between devices"] if setup.ranks > 1 else []),
    }
