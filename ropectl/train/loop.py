"""The training loop, without a branch on method, model, strategy or engine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ropectl.errors import MeasurementError, TrainingError
from ropectl.evaluate.judging.verdicts import largest_rise
from ropectl.reporter import Reporter
from ropectl.train.checks.validation import Validation, score
from ropectl.train.context_parallel.sharing import Sharing
from ropectl.train.data.batches import Batch, Batches, num_targets
from ropectl.train.engine.engine import Engine
from ropectl.train.run_state.progress import MetricsFile, RunProgress
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.schedule import learning_rate
from ropectl.train.settings import FinetuneSettings
from ropectl.train.stop import StopSignal

_DIVERGED = "Training has diverged. The states saved before are valid."
_REMEDY = "Lower the learning rate (--learning-rate), lengthen the warm-up, or use --precision bf16 or fp32."


@dataclass
class Loop:
    """A run in progress.

    Attributes:
        settings: What was asked for.
        engine: Model, optimizer and devices.
        batches: The sequences of this rank.
        folder: Where the run is kept.
        validation: The measurements on the way; None for none.
        reporter: Shows progress.
        progress: The progress of the run.
        sharing: The place of this rank among the others.
        keep_best: Called on every rank with the step whose weights are the best so far.
    """

    settings: FinetuneSettings
    engine: Engine
    batches: Batches
    folder: TrainingFolder
    validation: Validation | None
    reporter: Reporter
    progress: RunProgress
    sharing: Sharing
    keep_best: Callable[[int], None]

    def run(self, stop: StopSignal) -> int:
        """Trains to the end; returns 0, or the number of the signal that stopped it.

        Raises:
            TrainingError: If the loss or the gradient is not a number.
        """
        accelerator = self.engine.accelerator
        self._metrics = MetricsFile(self.folder.metrics, self.progress.step) if accelerator.is_main_process else None
        if self.progress.step == 0 and not self.progress.start_score:
            self._validate()
            self._save()  # proves, before anything is spent, that it can be done at all
        settings, saved = self.settings, self.progress.step
        self.reporter.steps(settings.steps, saved)
        patience = math.inf if settings.early_stop is None else settings.early_stop
        while self.progress.step < settings.steps and self.progress.since_best < patience:
            batches = [self.sharing.part(batch) for batch in self.batches.step(self.progress.step)]
            signals = [float(stop.number == number) for number in (2, 15)]
            total, *asked = self.engine.sum(num_targets(batches), *signals)
            if any(asked):
                if saved < self.progress.step:
                    self._save()
                return 2 if asked[0] else 15
            with self.sharing.use(self.engine.model):
                self._step(batches, total)
            if settings.eval_every and self.progress.step % settings.eval_every == 0:
                self._validate()
            if self.progress.step % settings.save_every == 0 or self.progress.step == settings.steps:
                self._save()
                saved = self.progress.step
        if saved < self.progress.step:
            self._save()
        return 0

    def _step(self, batches: list[Batch], total: float) -> None:
        began, engine, settings = time.perf_counter(), self.engine, self.settings
        rate = learning_rate(
            self.progress.step, peak=settings.peak_learning_rate, schedule=settings.schedule,
            warmup_steps=settings.warmup_steps, steps=settings.steps,
        )  # fmt: skip
        for group in engine.optimizer.param_groups:
            group["lr"] = rate
        device, nll = engine.accelerator.device, 0.0
        for index, batch in enumerate(batches):
            is_last = index == len(batches) - 1
            with engine.accumulation(is_last):
                loss = engine.loss(**{name: tensor.to(device) for name, tensor in batch.items()})
                engine.backward(loss, total)
            nll += loss.detach().double().item()
        norm = engine.clip(settings.clip)
        mean = engine.sum(nll)[0] / max(1.0, total)
        self._check_finite(mean, norm)
        engine.optimizer.step()
        engine.optimizer.zero_grad()
        seconds = time.perf_counter() - began
        self.progress.step += 1
        self.progress.tokens += int(total)
        self.progress.seconds += seconds
        finite_norm = norm if math.isfinite(norm) else None  # fp16 skips a step that overflows; JSON has no infinity
        metrics = {
            "step": self.progress.step,
            "loss": mean,
            "grad_norm": finite_norm,
            "learning_rate": rate,
            "tokens": self.progress.tokens,
            "tokens_per_second": round(total / seconds, 1),
            "seconds": round(self.progress.seconds, 3),
        }
        self._log(metrics)
        self.reporter.step(metrics)

    def _check_finite(self, loss: float, norm: float) -> None:
        scaled = self.engine.accelerator.mixed_precision == "fp16"  # there, a step whose gradient overflows is left out
        if not math.isfinite(loss) or not (scaled or math.isfinite(norm)):
            raise TrainingError(
                f"In step {self.progress.step + 1} the loss is {loss:g} and the norm of its gradient {norm:g}. {_DIVERGED}",
                _REMEDY,
            )

    def _validate(self) -> None:
        if self.validation is None:
            return
        progress = self.progress
        with self.engine.evaluation() as model:
            if not progress.unscaled:
                self.reporter.start("measuring the original model")
                progress.unscaled = self.validation.unscaled(model, self.reporter.advance)
            tokens, cost = self.validation.work
            self.reporter.start(f"validation at step {progress.step}", tokens, cost=cost)
            try:
                measured = self.validation.measure(model, self.reporter.advance)
            except MeasurementError as error:
                raise TrainingError(
                    f"Validation at step {progress.step}: {error.message} {_DIVERGED}", _REMEDY
                ) from error
        is_best = self._compare(self.engine.of_main(*score(measured)))
        record = {
            "step": progress.step,
            "validation": {**measured, "short_delta": largest_rise(measured["perplexity"], progress.unscaled)},
            "best": is_best,
        }
        self._log(record)
        self.reporter.validation(record)

    def _compare(self, own: list[float]) -> bool:
        """Returns whether this validation is the best of those after training began."""
        progress = self.progress
        if progress.step == 0:
            progress.start_score = own
            return False
        if progress.best_step is not None and own <= progress.best_score:
            progress.since_best += 1
            return False
        self.keep_best(progress.step)
        progress.best_step, progress.best_score, progress.since_best = progress.step, own, 0
        return True

    def _save(self) -> None:
        accelerator = self.engine.accelerator
        self.folder.save(
            self.progress.step, asdict(self.progress), self.settings.keep, self.engine.save,
            is_main=accelerator.is_main_process, barrier=accelerator.wait_for_everyone,
        )  # fmt: skip

    def _log(self, record: Mapping[str, Any]) -> None:
        if self._metrics is not None:
            self._metrics.write(record)
        flat = {name: value for name, value in record.items() if isinstance(value, int | float) and name != "step"}
        for kind in ("perplexity", "passkey"):
            flat |= {f"{kind}/{n}": value for n, value in record.get("validation", {}).get(kind, {}).items()}
        self.engine.accelerator.log(flat, step=record["step"])
