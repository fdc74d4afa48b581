"""Puts a run together: data, model, strategy, engine, loop, result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ropectl.errors import ConfigError
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import verify_rope
from ropectl.reporter import Reporter
from ropectl.train.activation_checkpointing import check_choice, checkpoint_activations
from ropectl.train.batches import Batches
from ropectl.train.best import BestWeights
from ropectl.train.data.prepare import make_data
from ropectl.train.data.samples import TrainingData
from ropectl.train.describe import describe_rope, describe_trained, training_record
from ropectl.train.disk_full import disk_explained
from ropectl.train.engine import Engine
from ropectl.train.export import export
from ropectl.train.first_loss import FirstLoss
from ropectl.train.loop import Loop
from ropectl.train.loss import CausalLoss
from ropectl.train.out_of_memory import memory_explained
from ropectl.train.outcome import Finetuned, finished_record
from ropectl.train.position_checks import check_positions
from ropectl.train.progress import Progress
from ropectl.train.run_folder import TrainingFolder, run_lock
from ropectl.train.sharing import Sharing, check_shared
from ropectl.train.stop import StopSignal
from ropectl.train.task import Task
from ropectl.train.validation import Validation, make_validation


def run(
    task: Task,
    folder: TrainingFolder | None,
    accelerator: Any,
    tokenizer: Any,
    bos_token_id: int | None,
    reporter: Reporter,
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
    check_choice(settings.activation_checkpointing, accelerator.device.type)
    with accelerator.main_process_first(), accelerator.local_main_process_first():  # a machine may have its own cache
        reporter.start("reading text")
        data = make_data(task, tokenizer, bos_token_id, reporter.advance)
    target = max(task.target_length, task.plan.target_length)
    validation, notes = make_validation(settings, task.source, task.plan.method, tokenizer, bos_token_id, target)
    for note in notes:
        reporter.note(note)
    identity = task.identity(data.fingerprint)
    if settings.dry_run or folder is None:
        from ropectl.train.estimate.dry_run import dry_run

        return Finetuned(dry_run(task, data, accelerator, reporter))
    assert settings.out is not None
    finished = None if settings.overwrite else finished_record(settings, identity)
    if finished is not None:
        reporter.note(f"{settings.out} is the finished result of these settings.")
        return Finetuned(finished, step=finished["training"]["step"])
    sharing = Sharing.of(task, accelerator)
    _check_free(task)
    with (
        _as_main(accelerator, folder, task, identity, reporter),
        memory_explained(task, folder),
        disk_explained(folder),
    ):
        return _train(task, folder, accelerator, data, validation, identity, sharing, reporter)


def _check_free(task: Task) -> None:
    out = task.settings.out
    assert out is not None
    if out.is_dir() and any(out.iterdir()) and not task.settings.overwrite:
        raise ConfigError(
            f"{out} exists already, and is not the result of these settings.",
            f"To begin anew and replace it: --overwrite. To go on from the run beside it: move {out} away first.",
        )


@contextmanager
def _as_main(
    accelerator: Any, folder: TrainingFolder, task: Task, identity: Mapping[str, Any], reporter: Reporter
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


def _train(
    task: Task,
    folder: TrainingFolder,
    accelerator: Any,
    data: TrainingData,
    validation: Validation | None,
    identity: Mapping[str, Any],
    sharing: Sharing,
    reporter: Reporter,
) -> Finetuned:
    from accelerate.utils import set_seed

    settings = task.settings
    reporter.start("loading weights")
    set_seed(settings.seed)
    model = _model(task, accelerator)
    reporter.note(describe_trained(model))
    with _arithmetic(model, accelerator):
        loss = CausalLoss(model, settings.loss_chunk)
        first = FirstLoss.of(loss, data)
    if not loss.reads_hidden:
        reporter.note(
            f"{type(model).__name__} changes logits behind its head: those of a whole sequence are held at once."
        )
    checkpoint_activations(model, settings.activation_checkpointing)
    model.train()
    engine = Engine.prepare(accelerator, loss, settings)
    frequencies = task.plan.method.frequencies(task.plan.geometry, task.frozen_at)
    verify_rope(engine.model, frequencies, task.source.rope.layer_type)
    reporter.note(describe_rope(task))
    if task.settings.warmup_steps >= task.settings.steps:
        reporter.note(
            f"The learning rate never arrives at its peak: warm-up takes {task.settings.warmup_steps} steps, training {task.settings.steps}."
        )
    with sharing.use(engine.model):
        for note in first.compare(engine, sharing):
            reporter.note(note)
    with engine.evaluation() as whole:
        check_positions(whole, settings.packing, settings.positions)
    if sharing.group is not None:
        # Not before: a model that is to be sharded was on the CPU until now, where attention could exchange nothing.
        with engine.whole() as whole, _arithmetic(whole, accelerator):
            sharing.group.verify(whole)
    progress = Progress()
    states = folder.states()
    if states:
        engine.load(states[-1].path)
        progress = Progress.from_json(states[-1].progress)
        reporter.note(f"Going on after step {progress.step}, from {states[-1].path}.")
    best = BestWeights(folder)
    if progress.best_step is not None and not best.has(progress.best_step):
        reporter.note(
            f"The weights of step {progress.best_step}, the best so far, are not there: the best is sought anew."
        )
        progress.forget_best()
    if settings.tracker:
        accelerator.init_trackers(
            "ropectl", config={k: v for k, v in identity.items() if isinstance(v, int | float | str | bool)}
        )
    batches = Batches(data, settings.batch_size, settings.micro_batch, sharing.data_rank, sharing.data_size)
    loop = Loop(
        settings, engine, batches, folder, validation, reporter, progress, sharing,
        keep_best=lambda step: best.write(step, engine.trained_weights(), accelerator.is_main_process),
    )  # fmt: skip
    with StopSignal() as stop:
        ended_by = loop.run(stop)
    if ended_by:
        reporter.note(f"Stopped after step {progress.step}; the same command goes on from there.")
        engine.close()
        accelerator.end_training()
        return Finetuned(None, ended_by, progress.step)
    is_best = progress.best_step in (None, progress.step)
    weights = engine.trained_weights() if is_best else {}
    is_main = accelerator.is_main_process
    training = training_record(task, data, engine, progress, identity, folder)
    engine.close()
    accelerator.end_training()
    if not is_main:
        return Finetuned(None, 0, progress.step)
    if progress.best_step is not None and not is_best:
        weights = best.read(progress.best_step)
        reporter.note(f"The best validation was at step {progress.best_step}; its weights are written.")
    if progress.start_score and progress.best_step is not None and progress.best_score <= progress.start_score:
        reporter.note("No validation was better than the one before the first step: this training did not help.")
    reporter.start("writing the checkpoint")
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
    apply_rope(model, plan.method, geometry=plan.geometry, seq_len=task.frozen_at, layers=task.source.rope.layer_type)
    return model


def _arithmetic(model: Any, accelerator: Any) -> AbstractContextManager[None]:
    """The arithmetic of a model that is not wrapped yet: its own type; where it has several, that of the training.

    Raises:
        ConfigError: If several types meet and the training does not cast.
    """
    types = {p.dtype for name, p in model.named_parameters() if "lora_" not in name}  # peft casts for its own matrices
    if len(types) < 2:
        return nullcontext()
    if accelerator.mixed_precision == "no":
        raise ConfigError(
            "Norms or embeddings that are trained are float32, and the frozen weights beside them are not.",
            "Type: --precision bf16 (or --dtype float32)",
        )
    context: AbstractContextManager[None] = accelerator.autocast()
    return context
