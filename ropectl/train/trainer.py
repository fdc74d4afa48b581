"""Trains one model: prepares and checks the engine, restores a saved state, runs the loop, writes the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from safetensors.torch import load_file

from ropectl.errors import ConfigError
from ropectl.hf.model.loading import LoadOptions, load_model
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import verify_rope
from ropectl.records import TrainingRecord, to_json
from ropectl.reporter import Reporter
from ropectl.train.checks.attention_spans import check_positions
from ropectl.train.checks.first_loss import FirstLoss
from ropectl.train.checks.validation import Validation
from ropectl.train.context_parallel.sharing import Sharing
from ropectl.train.data.batches import Batches
from ropectl.train.data.samples import TrainingData
from ropectl.train.engine.accelerator import describe_engine, is_sharded
from ropectl.train.engine.activation_checkpointing import checkpoint_activations
from ropectl.train.engine.engine import Engine
from ropectl.train.engine.loss import CausalLoss
from ropectl.train.export import export
from ropectl.train.loop import Loop
from ropectl.train.run_state.outcome import Finetuned, training_record
from ropectl.train.run_state.progress import RunProgress
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.stop import StopSignal
from ropectl.train.strategies.strategy import describe_trained
from ropectl.train.task import Task


@dataclass(frozen=True)
class Trainer:
    """A run whose data and folder are ready; no weight is loaded yet.

    Attributes:
        task: What was asked for, checked.
        folder: Where the run is kept, locked by this process.
        accelerator: Accelerate's, as its launcher set it up.
        data: The sequences.
        validation: The measurements on the way; None for none.
        identity: All that decides the result.
        sharing: The place of this rank among the others.
        reporter: Shows progress and notes.
    """

    task: Task
    folder: TrainingFolder
    accelerator: Any
    data: TrainingData
    validation: Validation | None
    identity: Mapping[str, Any]
    sharing: Sharing
    reporter: Reporter

    def train(self) -> Finetuned:
        """Trains to the end or to a signal; at the end the main process writes the result.

        Raises:
            ConfigError: If the model itself makes the request impossible.
            TrainingError: If training diverges; the saved states stay valid.
        """
        with self._engine() as engine:
            progress = self._restored(engine)
            ended_by = self._run_loop(engine, progress)
            if ended_by:
                self.reporter.note(f"Stopped after step {progress.step}; the same command continues from there.")
                return Finetuned(None, ended_by, progress.step)
            weights = engine.trained_weights() if progress.is_at_best else {}
            described = describe_engine(self.accelerator)
            training = training_record(self.task, self.data, progress, self.identity, self.folder, described)
        if not self.accelerator.is_main_process:
            return Finetuned(None, 0, progress.step)
        if progress.best_step is not None and not progress.is_at_best:
            weights = load_file(self.folder.best_weights(progress.best_step))
            self.reporter.note(f"The best validation was at step {progress.best_step}; its weights are written.")
        return Finetuned(self._write(progress, weights, training), 0, progress.step)

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        """Yields the checked engine and closes it at a regular end; after a failure other ranks may wait for this one."""
        engine = self._prepared()
        yield engine
        engine.close()
        self.accelerator.end_training()

    def _prepared(self) -> Engine:
        from accelerate.utils import set_seed

        settings, note = self.task.settings, self.reporter.note
        self.reporter.start("loading weights")
        set_seed(settings.seed)
        model = _model(self.task, self.accelerator)
        note(describe_trained(model))
        with _arithmetic(model, self.accelerator):
            loss = CausalLoss(model, settings.loss_chunk)
            first = FirstLoss.of(loss, self.data)
        if not loss.reads_hidden:
            note(f"{type(model).__name__} changes logits after its head: those of a whole sequence are held at once.")
        checkpoint_activations(model, settings.activation_checkpointing)
        model.train()
        engine = Engine.prepare(self.accelerator, loss, settings)
        self._check(engine, first)
        return engine

    def _check(self, engine: Engine, first: FirstLoss) -> None:
        """Checks that the wrapped model computes what was asked for, before anything is spent on it."""
        task, settings, note = self.task, self.task.settings, self.reporter.note
        frequencies = task.plan.method.frequencies(task.plan.geometry, task.frozen_at)
        verify_rope(engine.model, frequencies, task.source.rope.layer_type)
        note(task.describe_tables())
        if settings.warmup_steps >= settings.steps:
            note(
                f"The learning rate never reaches its peak: warm-up takes {settings.warmup_steps} steps, training {settings.steps}."
            )
        with self.sharing.use(engine.model):
            for text in first.compare(engine, self.sharing):
                note(text)
        with engine.evaluation() as whole:
            check_positions(whole, settings.packing, settings.positions)
        if self.sharing.group is not None:
            # Not earlier: a model to be sharded was on the CPU until now, where attention could exchange nothing.
            with engine.whole() as whole, _arithmetic(whole, self.accelerator):
                self.sharing.group.verify(whole)

    def _restored(self, engine: Engine) -> RunProgress:
        """Loads the newest state into the engine, if there is one; returns the progress of the run."""
        states = self.folder.states()
        if not states:
            return RunProgress()
        engine.load(states[-1].path)
        progress = RunProgress.from_json(states[-1].progress)
        self.reporter.note(f"Continuing after step {progress.step}, from {states[-1].path}.")
        if progress.best_step is not None and not self.folder.best_weights(progress.best_step).is_file():
            self.reporter.note(
                f"The weights of step {progress.best_step}, the best so far, are missing: the search for the best starts again."
            )
            progress.forget_best()
        return progress

    def _run_loop(self, engine: Engine, progress: RunProgress) -> int:
        """Runs the loop; returns 0, or the number of the signal that stopped it."""
        settings, accelerator = self.task.settings, self.accelerator
        if settings.tracker:
            config = {k: v for k, v in self.identity.items() if isinstance(v, int | float | str | bool)}
            accelerator.init_trackers("ropectl", config=config)
        batches = Batches(
            self.data, settings.batch_size, settings.micro_batch, self.sharing.data_rank, self.sharing.data_size
        )

        def keep_best(step: int) -> None:
            weights = engine.trained_weights()
            if accelerator.is_main_process:
                self.folder.write_best(step, weights)

        folder, validation = self.folder, self.validation
        loop = Loop(settings, engine, batches, folder, validation, self.reporter, progress, self.sharing, keep_best)
        with StopSignal() as stop:
            return loop.run(stop)

    def _write(self, progress: RunProgress, weights: Mapping[str, Any], training: TrainingRecord) -> dict[str, Any]:
        """Writes the result; returns its record."""
        note = self.reporter.note
        if progress.start_score and progress.best_step is not None and progress.best_score <= progress.start_score:
            note("No validation was better than the one before the first step: this training did not help.")
        self.reporter.start("writing the checkpoint")
        return to_json(export(self.task, weights, training, note))


def _model(task: Task, accelerator: Any) -> Any:
    """Returns the model to train, prepared by the strategy, its rotary tables in force."""
    settings, plan = task.settings, task.plan
    device = "cpu" if is_sharded(accelerator) else str(accelerator.device)
    dtype = settings.dtype
    if dtype == "auto" and settings.strategy == "full":
        dtype = "float32"  # updates are too small for half precision
    options = LoadOptions(dtype, device, settings.trust_remote_code, settings.allow_pickle, settings.attention)
    model = load_model(task.source, options)
    task.strategy.prepare(model)
    apply_rope(model, plan.method, geometry=plan.geometry, seq_len=task.frozen_at, layers=task.source.rope.layer_type)
    return model


def _arithmetic(model: Any, accelerator: Any) -> AbstractContextManager[None]:
    """Returns the context in which a model that is not wrapped yet computes: in its own type, or that of the training.

    Raises:
        ConfigError: If several types meet and the training does not cast.
    """
    types = {p.dtype for name, p in model.named_parameters() if "lora_" not in name}  # peft casts for its own matrices
    if len(types) < 2:
        return nullcontext()
    if accelerator.mixed_precision == "no":
        raise ConfigError(
            "Norms or embeddings that are trained are float32, but the frozen weights are not.",
            "Type: --precision bf16 (or --dtype float32)",
        )
    context: AbstractContextManager[None] = accelerator.autocast()
    return context
