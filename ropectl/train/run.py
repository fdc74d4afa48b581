"""Puts a run together: data, model, strategy, engine, loop, result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from ropectl.data.training import TrainingData
from ropectl.errors import ConfigError, TrainingError
from ropectl.hf.loading import LoadOptions, load_model
from ropectl.hf.patch import apply_rope
from ropectl.hf.rotary import verify_rope
from ropectl.runs import content_id
from ropectl.train.batches import Batches
from ropectl.train.best import BestWeights
from ropectl.train.data import make_data
from ropectl.train.engine import Engine
from ropectl.train.export import export
from ropectl.train.first_loss import FirstLoss
from ropectl.train.loop import Loop, Progress
from ropectl.train.loss import CausalLoss
from ropectl.train.outcome import Finetuned, finished_record
from ropectl.train.position_checks import check_positions
from ropectl.train.reporter import TrainReporter
from ropectl.train.run_folder import TrainingFolder, read_metrics, run_lock
from ropectl.train.sharing import Sharing, check_shared
from ropectl.train.stop import StopSignal
from ropectl.train.strategies.strategy import trained_parameters
from ropectl.train.task import Task
from ropectl.train.validation import Validation, make_validation


def run(
    task: Task,
    folder: TrainingFolder | None,
    accelerator: Any,
    tokenizer: Any,
    bos_token_id: int | None,
    reporter: TrainReporter,
) -> Finetuned:
    """Trains, and writes the result; or goes on with what the folder holds; or only estimates.

    Args:
        task: What was asked for, checked.
        folder: Where the run is kept; None where nothing is written.
        accelerator: Accelerate's, as its launcher set it up.
        tokenizer: The model's tokenizer.
        bos_token_id: What every document begins with; None for nothing.
        reporter: Told how it goes.
    """
    settings = task.settings
    with accelerator.main_process_first(), accelerator.local_main_process_first():  # a machine may have its own cache
        reporter.phase("reading text")
        data = make_data(task, tokenizer, bos_token_id, reporter.advance)
    target = max(task.target_length, task.plan.target_length)
    validation, notes = make_validation(settings, task.source, task.plan.method, tokenizer, bos_token_id, target)
    for note in notes:
        reporter.note(note)
    identity = task.identity(data.fingerprint)
    if settings.dry_run or folder is None:
        from ropectl.train.estimate import dry_run

        return Finetuned(dry_run(task, data, accelerator, reporter))
    assert settings.out is not None
    finished = None if settings.overwrite else finished_record(settings.out, identity)
    if finished is not None:
        reporter.note(f"{settings.out} is the finished result of these settings.")
        return Finetuned(finished, step=finished["training"]["step"])
    sharing = Sharing.of(task, accelerator)
    _check_free(task)
    with _as_main(accelerator, folder, task, identity, reporter), _memory_explained(task, folder):
        return _train(task, folder, accelerator, data, validation, identity, sharing, reporter)


def _check_free(task: Task) -> None:
    out = task.settings.out
    assert out is not None
    if out.is_dir() and any(out.iterdir()) and not task.settings.overwrite:
        raise ConfigError(
            f"{out} exists already, and is not the result of these settings.", "To replace it: --overwrite"
        )


@contextmanager
def _as_main(
    accelerator: Any, folder: TrainingFolder, task: Task, identity: Mapping[str, Any], reporter: TrainReporter
) -> Iterator[None]:
    """Prepares the folder on the main process, locked against a second run; the others wait."""
    with run_lock(folder.path) if accelerator.is_main_process else nullcontext():
        if accelerator.is_main_process and (task.settings.overwrite or not task.settings.resume):
            folder.clear()
        accelerator.wait_for_everyone()
        for note in folder.check_settings(identity, task.settings.force):  # on every rank: all refuse, or none
            reporter.note(note)
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            folder.begin(identity)
        accelerator.wait_for_everyone()
        check_shared(folder, accelerator)
        yield


@contextmanager
def _memory_explained(task: Task, folder: TrainingFolder) -> Iterator[None]:
    """Turns running out of memory into what can be done about it."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, torch.OutOfMemoryError | MemoryError) and "not enough memory" not in str(error):
            raise
        kept = folder.states()
        state = f"The state after step {kept[-1].progress['step']} is whole" if kept else "No state was saved yet"
        raise TrainingError(
            f"Memory ran out at {task.seq_len} tokens a sequence and micro-batch {task.settings.micro_batch}. {state}.",
            "Levers: --activation-checkpointing on (or offload); --micro-batch 1 and a smaller --loss-chunk; a shorter "
            "--seq-len, for example with --positions pose. More devices: --cp-size. What needs how much: --dry-run",
        ) from error


def _train(
    task: Task,
    folder: TrainingFolder,
    accelerator: Any,
    data: TrainingData,
    validation: Validation | None,
    identity: Mapping[str, Any],
    sharing: Sharing,
    reporter: TrainReporter,
) -> Finetuned:
    from accelerate.utils import set_seed

    settings = task.settings
    reporter.phase("loading weights")
    set_seed(settings.seed)
    model = _model(task, accelerator)
    names = trained_parameters(model)
    reporter.note(_describe_trained(names, model))
    loss = CausalLoss(model, settings.loss_chunk)
    if not loss.reads_hidden:
        reporter.note(
            f"{type(model).__name__} changes logits behind its head: those of a whole sequence are held at once."
        )
    first = FirstLoss.of(loss, data)
    _checkpoint_activations(model, settings.activation_checkpointing)
    model.train()
    engine = Engine.prepare(accelerator, loss, settings)
    frequencies = task.plan.method.frequencies(task.plan.geometry, _seq_len(task))
    verify_rope(engine.model, frequencies, task.source.rope.layer_type)
    reporter.note(_describe_rope(task))
    with sharing.use(engine.model):
        for note in first.compare(engine, sharing):
            reporter.note(note)
    with engine.evaluation() as whole:
        check_positions(whole, settings.packing, settings.positions)
    if sharing.group is not None:
        with engine.whole() as whole:  # where attention can exchange: before, a model to shard is on the CPU
            sharing.group.verify(whole)
    progress = Progress()
    states = folder.states()
    if states:
        engine.load(states[-1].path)
        progress = Progress.from_json(states[-1].progress)
        reporter.note(f"Going on after step {progress.step}, from {states[-1].path}.")
    if settings.tracker:
        accelerator.init_trackers(
            "ropectl", config={k: v for k, v in identity.items() if isinstance(v, int | float | str | bool)}
        )
    batches = Batches(data, settings.batch_size, settings.micro_batch, sharing.data_rank, sharing.data_size)
    best = BestWeights(folder.best)
    loop = Loop(
        settings, engine, batches, folder, validation, reporter, progress, sharing,
        keep_best=lambda: best.write(engine.trained_weights(), accelerator.is_main_process),
    )  # fmt: skip
    with StopSignal() as stop:
        ended_by = loop.run(stop)
    if ended_by:
        reporter.note(f"Stopped after step {progress.step}; the same command goes on from there.")
        engine.close()
        accelerator.end_training()
        return Finetuned(None, ended_by, progress.step)
    weights = engine.trained_weights()
    is_main = accelerator.is_main_process
    training = _training_record(task, data, engine, progress, identity, folder)
    engine.close()
    accelerator.end_training()
    if not is_main:
        return Finetuned(None, 0, progress.step)
    if progress.best_step not in (None, progress.step):
        weights = best.read()
        reporter.note(f"The best validation was at step {progress.best_step}; its weights are written.")
    if progress.start_score and progress.best_step is not None and progress.best_score <= progress.start_score:
        reporter.note("No validation was better than the one before the first step: this training did not help.")
    reporter.phase("writing the checkpoint")
    patch = task.patch.model_copy(update={"overwrite": settings.overwrite})
    record = export(settings, patch, task.plan, task.strategy, weights, training, reporter.note)
    return Finetuned(record, 0, progress.step)


def _model(task: Task, accelerator: Any) -> Any:
    """The model to train: its weights, what is trained of them, its rotary tables."""
    settings, plan = task.settings, task.plan
    is_sharded = accelerator.distributed_type.value == "FSDP"
    device = "cpu" if is_sharded else str(accelerator.device)
    dtype = settings.dtype
    if dtype == "auto" and settings.strategy == "full":
        dtype = "float32"  # updates are too small for half precision to see
    options = LoadOptions(dtype, device, settings.trust_remote_code, settings.allow_pickle, settings.attention)
    model = load_model(task.source, options)
    task.strategy.prepare(model)
    apply_rope(model, plan.method, geometry=plan.geometry, seq_len=_seq_len(task), layers=task.source.rope.layer_type)
    return model


def _seq_len(task: Task) -> int | None:
    """The length at which a length-dependent method is frozen while training."""
    return (task.plan.seq_len or task.target_length) if task.plan.method.depends_on_seq_len else None


def _checkpoint_activations(model: Any, choice: str) -> None:
    if choice == "off":
        return
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(offload=choice == "offload")
    elif choice == "offload":
        raise ConfigError(
            "activation-checkpointing = offload needs a newer transformers.", "Type: --activation-checkpointing on"
        )
    else:
        model.gradient_checkpointing_enable({"use_reentrant": False})


def _describe_trained(names: Mapping[str, Any], model: Any) -> str:
    trained, total = sum(p.numel() for p in names.values()), sum(p.numel() for p in model.parameters())
    text = f"Training {trained:,} of {total:,} parameters in {len(names)} tensors"
    whole = sorted({name.replace(".modules_to_save.default", "") for name in names if "modules_to_save" in name})
    return f"{text}; beside LoRA matrices: {', '.join(whole)}." if whole else f"{text}."


def _describe_rope(task: Task) -> str:
    geometry, method = task.plan.geometry, task.plan.method
    frequencies = method.frequencies(geometry, _seq_len(task))
    factor = f" x{method.factor:g}" if hasattr(method, "factor") else ""
    frozen = f" frozen at {_seq_len(task)}" if method.depends_on_seq_len else ""
    return (
        f"rope: {method.name}{factor}{frozen} orig={geometry.original_max_position_embeddings} "
        f"base={geometry.rope_theta:g} attn={frequencies.attention_factor:.6f}"
    )


def _training_record(
    task: Task,
    data: TrainingData,
    engine: Engine,
    progress: Progress,
    identity: Mapping[str, Any],
    folder: TrainingFolder,
) -> dict[str, Any]:
    """What the result's record says of its training."""
    lines = read_metrics(folder.metrics)
    validations = {line["step"]: line["validation"] for line in lines if "validation" in line}
    losses = [line["loss"] for line in lines if "loss" in line]
    chosen = progress.best_step if progress.best_step is not None else progress.step
    accelerator = engine.accelerator
    return {
        "id": content_id(dict(identity)),
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
