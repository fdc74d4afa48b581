"""Prepares a run: its data, its validation, and its folder, locked against other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ropectl.errors import ConfigError
from ropectl.hf.model.loading import LoadOptions, check_loadable
from ropectl.reporter import Reporter
from ropectl.train.checks.validation import make_validation
from ropectl.train.context_parallel.sharing import Sharing, check_shared
from ropectl.train.context_parallel.sizes import check_group_size
from ropectl.train.data.prepare import make_data
from ropectl.train.engine.activation_checkpointing import check_choice
from ropectl.train.failures import failures_explained
from ropectl.train.run_state.outcome import Finetuned, finished_record
from ropectl.train.run_state.run_folder import LOCK, TrainingFolder
from ropectl.train.task import Task
from ropectl.train.trainer import Trainer


def run(
    task: Task,
    folder: TrainingFolder | None,
    accelerator: Any,
    tokenizer: Any,
    bos_token_id: int | None,
    reporter: Reporter,
) -> Finetuned:
    """Trains and writes the result, continuing from what the folder holds; or only estimates.

    Args:
        task: What was asked for, checked.
        folder: Where the run is kept; None where nothing is written.
        accelerator: Accelerate's, as its launcher set it up.
        tokenizer: The model's tokenizer.
        bos_token_id: What every document begins with; None for nothing.
        reporter: Shows progress and notes.
    """
    settings = task.settings
    check_group_size(settings.cp_size, accelerator.num_processes)
    check_choice(settings.activation_checkpointing, accelerator.device.type)
    target = max(task.target_length, task.plan.target_length)
    validation, notes = make_validation(settings, task.source, task.plan.method, tokenizer, bos_token_id, target)
    for note in notes:
        reporter.note(note)
    with accelerator.main_process_first(), accelerator.local_main_process_first():  # a machine may have its own cache
        reporter.start("reading text")
        data = make_data(task, tokenizer, bos_token_id, reporter.advance)
    if not settings.dry_run:
        options = LoadOptions(trust_remote_code=settings.trust_remote_code, allow_pickle=settings.allow_pickle)
        try:
            check_loadable(task.source, options)
        except ConfigError:
            data.store.discard()
            raise
    identity = task.identity(data.fingerprint)
    if settings.dry_run or folder is None:
        from ropectl.train.estimate.run_estimate import dry_run

        return Finetuned(dry_run(task, data, accelerator, reporter))
    assert settings.out is not None
    finished = None if settings.overwrite else finished_record(settings, identity)
    if finished is not None:
        reporter.note(f"{settings.out} is the finished result of these settings.")
        return Finetuned(finished, step=finished["training"]["step"])
    sharing = Sharing.of(task, accelerator)
    if settings.out.is_dir() and any(settings.out.iterdir()) and not settings.overwrite:
        raise ConfigError(
            f"{settings.out} exists already, and is not the result of these settings.",
            f"To begin again and replace it: --overwrite. To continue the run next to it: move {settings.out} away first.",
        )
    with _held_folder(accelerator, folder, task, identity, reporter), failures_explained(task, folder):
        return Trainer(task, folder, accelerator, data, validation, identity, sharing, reporter).train()


@contextmanager
def _held_folder(
    accelerator: Any, folder: TrainingFolder, task: Task, identity: Mapping[str, Any], reporter: Reporter
) -> Iterator[None]:
    """Prepares the folder on the main process, locked against a second run; the others wait."""
    with _run_lock(folder.path) if accelerator.is_main_process else nullcontext():
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
def _run_lock(path: Path) -> Iterator[None]:
    """Locks a folder against other runs while the context lasts."""
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # falls with its process, even by kill -9
        except ImportError:
            pass  # Windows has no such lock
        except OSError:
            raise ConfigError(
                f"Another run is writing to {path}.", "Wait for it, or choose another place: --out PATH"
            ) from None
        yield
    finally:
        os.close(descriptor)
