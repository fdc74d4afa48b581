"""The trainings of a comparison: all are checked before the first begins, and one that fails does not stop the others."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ropectl.checkpoint.plan import needs_freezing
from ropectl.compare.cells import empty_caches
from ropectl.compare.tuned.recipe import Recipe
from ropectl.errors import ConfigError
from ropectl.evaluate.setup import Setup
from ropectl.hf.config.source import read_config
from ropectl.hf.fingerprint import model_fingerprint
from ropectl.records import TrainingSummary
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod, short_spec
from ropectl.train.checks.validation import make_validation
from ropectl.train.data.prepare import make_data
from ropectl.train.export import check_base
from ropectl.train.finetuning import checked_folder, finetune
from ropectl.train.run_state.outcome import finished_record, result_id
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.settings import FinetuneSettings
from ropectl.train.task import Task

TUNED_FOLDER, MODEL_FOLDER = "tuned", "model"


@dataclass(frozen=True)
class Training:
    """The training of one method, checked as far as that needs no weights.

    Attributes:
        method: The method.
        settings: How it is trained; once :meth:`placed`, also where the result goes.
        identity: All that decides the result.
        covered: Positions that it covers [tokens].
    """

    method: ScalingMethod
    settings: FinetuneSettings
    identity: dict[str, Any]
    covered: int

    @property
    def id(self) -> str:
        """The name that the result's own record gives it."""
        return result_id(self.settings, self.identity)

    @property
    def out(self) -> Path:
        """Folder of the tuned checkpoint."""
        assert self.settings.out is not None, "placed before it is run"
        return self.settings.out

    @property
    def label(self) -> str:
        """The training's name for people."""
        return f"{short_spec(str(self.method))}, tuned"

    def placed(self, folder: Path) -> Training:
        """Returns the same training with a place of its own in a run folder.

        Raises:
            ConfigError: If it cannot be written there.
        """
        out = folder / TUNED_FOLDER / f"{self.method.name}-{self.id[:8]}" / MODEL_FOLDER
        settings = self.settings.model_copy(update={"out": out})
        checked_folder(Task.of(settings))
        return replace(self, settings=settings)

    def finished(self) -> dict[str, Any] | None:
        """Returns the record of its result; None if it is not finished."""
        return finished_record(self.settings, self.identity)

    def summary(self) -> TrainingSummary:
        """Returns what a row says of it."""
        record = self.finished()
        if record is None:
            return TrainingSummary(self.id)
        numbers = {name: record["training"][name] for name in ("steps", "tokens", "seconds", "last_loss")}
        return TrainingSummary(self.id, **numbers, checkpoint=str(self.out))

    def tuned_setup(self, setup: Setup) -> Setup:
        """Returns the model with the tuned weights, to be loaded as the original is."""
        config = setup.config
        layers = setup.source.rope.layer_type
        return replace(setup, source=read_config(str(self.out), None, None, config.trust_remote_code, layers))

    def cell_settings(self, tuned: Setup) -> dict[str, Any]:
        """Returns what tells its cells from those of the model as it is given, and of any other training."""
        return {"training": {"id": self.id, "checkpoint_fingerprint": model_fingerprint(tuned.source)}}


def plan_trainings(
    recipe: Recipe, setup: Setup, methods: Sequence[ScalingMethod], target_length: int, reporter: Reporter
) -> list[Training]:
    """Returns the trainings of all methods, having made every check that needs no weights.

    Args:
        recipe: How all are trained.
        setup: The model.
        methods: The methods.
        target_length: The context that the comparison is about [tokens].
        reporter: Receives notes.

    Raises:
        ConfigError: If one of them cannot work.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ConfigError(
            "compare-methods --finetune runs as one process; it was started as several.",
            "Start it without a launcher, or train each method with: accelerate launch -m ropectl finetune ...",
        )
    trainings: list[Training] = []
    for method in methods:
        settings = recipe.settings(setup, method, target_length, needs_freezing(method, setup.source))
        assert settings.seq_len is not None
        if settings.positions == "pose" and _aims_at(method, setup, target_length) <= settings.seq_len:
            reporter.note(
                f"{short_spec(str(method))} is not trained: it aims at no more than the {settings.seq_len} tokens of a "
                "sequence, so positions = pose has nothing to skip."
            )
            continue
        task = Task.of(settings)
        check_base(task.source, task.strategy)
        with reporter.nested("training data") as listener:
            listener.start("reading text")
            data = make_data(task, setup.tokenizer, setup.bos_token_id, listener.advance)
        longest = max(task.target_length, task.plan.target_length)
        _, notes = make_validation(settings, task.source, method, setup.tokenizer, setup.bos_token_id, longest)
        if not trainings:
            for note in notes:
                reporter.note(note)
        trainings.append(Training(method, settings, task.identity(data.fingerprint), task.target_length))
    return trainings


def _aims_at(method: ScalingMethod, setup: Setup, target_length: int) -> int:
    follows = method.depends_on_seq_len and not hasattr(method, "factor")
    return target_length if follows else method.target_length(setup.geometry)


def run_training(training: Training, reporter: Reporter) -> str | None:
    """Trains, or continues an interrupted training; returns what went wrong, or None.

    The states that it would be continued from are removed once it is finished: those of many methods would fill a disk.

    Raises:
        ConfigError: If the request cannot work, which shows in some ways only once weights are there.
    """
    if training.finished() is None:
        empty_caches()
        try:
            with reporter.nested(training.label) as listener:
                ended = finetune(training.settings, listener)
        except ConfigError:
            raise
        except Exception as error:  # whatever goes wrong with one method must not cost the others
            return " ".join(str(error).split("\n")) or type(error).__name__
        finally:
            empty_caches()
        if ended.signal:
            signal.raise_signal(ended.signal)  # the loop finished its step for it; now it ends the whole run
            raise KeyboardInterrupt
    folder = TrainingFolder(training.out)
    for path in (*(state.path for state in folder.states()), folder.best):
        shutil.rmtree(path, ignore_errors=True)
    return None
