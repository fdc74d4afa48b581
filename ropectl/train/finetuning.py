"""Carries out ``finetune``: settings in, a tuned checkpoint and its record out.

Cheap checks come first: nothing is loaded before the text gives sequences and the result can be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ropectl.checkpoint.staging import prepare_place
from ropectl.checkpoint.weights import source_places
from ropectl.data.address import exists, parse_address
from ropectl.data.sources import check_source
from ropectl.data.tokens import bos_token
from ropectl.errors import ConfigError
from ropectl.hf.config.sidecar import SIDECAR
from ropectl.hf.model.loading import LoadOptions, load_tokenizer
from ropectl.reporter import Reporter
from ropectl.train.run_state.outcome import Finetuned
from ropectl.train.run_state.run_folder import TrainingFolder
from ropectl.train.settings import FinetuneSettings
from ropectl.train.task import Task


def finetune(settings: FinetuneSettings, reporter: Reporter | None = None, hints: Sequence[str] = ()) -> Finetuned:
    """Trains a model with a scaling in force, and writes it as a checkpoint that stock runtimes load.

    Args:
        settings: Which model, method and text, how, and where to.
        reporter: Shows progress and notes.
        hints: Further notes, for when the request is checked and nothing has begun.

    Raises:
        ConfigError: If the request cannot work; found before weights load, and nothing is written then.
        TrainingError: If training diverges or memory runs out; the saved states stay valid.
    """
    reporter = reporter or Reporter()
    task = Task.of(settings)
    from ropectl.train.export import check_base

    check_base(task.source, task.strategy)
    folder = checked_folder(task)
    check_source(settings.text)
    for note in (*task.plan.notes, *hints):
        reporter.note(note)
    from ropectl.train.engine.accelerator import make_accelerator
    from ropectl.train.run import run

    accelerator = make_accelerator(settings, folder.path if folder else None)
    tokenizer = load_tokenizer(task.source, LoadOptions(trust_remote_code=settings.trust_remote_code))
    return run(task, folder, accelerator, tokenizer, bos_token(tokenizer, settings.bos), reporter)


def checked_folder(task: Task) -> TrainingFolder | None:
    """Returns the folder of the run, once its result can be written; None for an estimate without a place.

    Raises:
        ConfigError: If the place is missing, taken or cannot be written.
    """
    settings = task.settings
    if settings.out is None:
        if settings.dry_run:
            return None
        raise ConfigError(
            "finetune needs a place to write to.", "Type for example: -o tuned, or --dry-run for an estimate"
        )
    prepare_place(settings.out, source_places(task.source), settings.overwrite or settings.resume)
    if settings.out.exists() and not settings.out.is_dir():
        raise ConfigError(f"{settings.out} is a file; the result is a folder.", "Choose another place: --out PATH")
    text = Path(parse_address(settings.text, ":#").name)
    if exists(str(text)) and text.is_dir() and text.resolve() in settings.out.resolve().parents:
        raise ConfigError(
            f"{settings.out} is inside the training text {settings.text}: the run's own files would become part of it.",
            "Choose another place: --out PATH",
        )
    folder = TrainingFolder(settings.out)
    folder.check_place()
    taken = settings.out.is_dir() and any(settings.out.iterdir())
    if taken and not settings.overwrite and not (settings.out / SIDECAR).is_file():
        raise ConfigError(
            f"{settings.out} exists already, and is not a result of finetune.", "To replace it: --overwrite"
        )
    if settings.resume and not (
        settings.overwrite or taken
    ):  # before the text is read; whether that is the same shows later
        folder.check_settings(task.identity(folder.data_fingerprint), settings.force)
    return folder
