"""Carries out ``patch``: settings in, a proven checkpoint and its record out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ropectl.checkpoint.files import FileList, check_space, check_weights, copy_files, list_files
from ropectl.checkpoint.gguf_patch import patch_gguf_file
from ropectl.checkpoint.plan import PatchPlan, plan_patch
from ropectl.checkpoint.record import CARD, patch_record
from ropectl.checkpoint.settings import PatchSettings
from ropectl.checkpoint.staging import prepare_place
from ropectl.checkpoint.weights import hub_sizes, is_rewritten, source_files, source_places, write_weights
from ropectl.checkpoint.writing import TOKENIZER_CONFIG, load_options, stage_adapter, stage_checkpoint, tokenizer_config
from ropectl.errors import ConfigError
from ropectl.hf.config.sidecar import SIDECAR
from ropectl.hf.config.source import ModelSource, read_source
from ropectl.hf.run_names import check_gguf_weights
from ropectl.hf.tensors.fit import check_tensors
from ropectl.records import PatchRecord, WrittenFiles, to_json
from ropectl.reporter import Reporter


def patch_checkpoint(settings: PatchSettings, reporter: Reporter | None = None) -> dict[str, Any]:
    """Writes a checkpoint that stock runtimes load with the scaling in force; returns its record.

    Args:
        settings: Which checkpoint, which method, where to.
        reporter: Shows progress and notes.

    Returns:
        The record, which is also stored as ``ropectl.json``; with ``dry_run`` the plan in the same form.

    Raises:
        ConfigError: If the request cannot work; nothing is written then.
        PatchError: If what was written does not compute what the method says; it is removed again.
    """
    reporter = reporter or Reporter()
    if settings.gguf_patch is not None:
        record = patch_gguf_file(settings)
        for note in record.notes:
            reporter.note(note)
        return to_json(record)
    source = read_source(settings)
    _check_effects(settings, source)
    if source.gguf_file is not None:
        check_gguf_weights(source.name, source.config)
    plan = plan_patch(settings, source)
    if settings.drop_code and "auto_map" not in source.config:
        reporter.note(f"--drop-code: {source.name} brings no code of its own.")
    plan = replace(plan, notes=(*plan.notes, *check_tensors(source, complete=not settings.dry_run)))
    if settings.out is not None:
        prepare_place(settings.out, source_places(source), settings.overwrite)
    elif not settings.dry_run:
        raise ConfigError(
            "patch needs a place to write to.", "Type for example: -o patched, or --dry-run to see the plan"
        )
    for note in plan.notes:
        reporter.note(note)
    if settings.dry_run:
        return to_json(_dry_run(settings, plan, reporter))
    if source.adapter is not None and settings.merge is False:
        return to_json(_write_adapter(settings, plan, reporter))
    return to_json(_write_checkpoint(settings, plan, reporter))


def _check_effects(settings: PatchSettings, source: ModelSource) -> None:
    """Refuses settings that would change nothing on this checkpoint."""
    if settings.merge is not None and source.adapter is None:
        raise ConfigError(
            f"--{'merge' if settings.merge else 'no-merge'} is for LoRA adapters, and {source.name} is none.",
            "Leave it out.",
        )
    if settings.dtype != "auto" and not is_rewritten(source, settings.merge is not False):
        raise ConfigError(
            f"--dtype {settings.dtype} converts weights that are loaded and saved, those of GGUF files and merged adapters; "
            f"those of {source.name} are copied as they are.",
            "Leave out --dtype.",
        )
    if settings.verify_logits and settings.dry_run:
        raise ConfigError(
            "--verify-logits compares what was written, and --dry-run writes nothing.", "Give one of them."
        )


def _write_checkpoint(settings: PatchSettings, plan: PatchPlan, reporter: Reporter) -> PatchRecord:
    from ropectl.hf.model.loading import check_loadable

    assert settings.out is not None
    if is_rewritten(plan.source, settings.merge is not False):

        def write(aside: Path) -> WrittenFiles:
            reporter.start("loading and saving weights")
            write_weights(plan.source, aside, load_options(settings), reporter.note)
            return WrittenFiles(rewritten=True)

        return stage_checkpoint(settings, plan, write, reporter)
    files = source_files(plan.source, settings.allow_pickle)
    if files.weights:
        check_loadable(plan.source, load_options(settings))
    check_space(settings.out, 0 if settings.link else files.num_bytes)
    tokenizer_config(plan, files.root)  # damage shows here, before anything is copied

    def copy(aside: Path) -> WrittenFiles:
        _copy(settings, files, aside, reporter)
        return files.describe(settings.link)

    return stage_checkpoint(settings, plan, copy, reporter, origin=files.root)


def _copy(settings: PatchSettings, files: FileList, aside: Path, reporter: Reporter) -> None:
    rewritten = {"config.json", TOKENIZER_CONFIG, SIDECAR, CARD}
    kept = [name for name in files.kept if name not in rewritten]
    if settings.drop_code:
        kept = [name for name in kept if not name.endswith(".py")]
    if files.left_out:
        reporter.note(
            f"Left out, because pickles can run code: {', '.join(files.left_out)}. To copy them: --allow-pickle"
        )
    copied = FileList(files.root, tuple(kept))
    reporter.start("linking" if settings.link else "copying", copied.num_bytes, unit="bytes")
    copy_files(copied, aside, settings.link, reporter.advance)


def _write_adapter(settings: PatchSettings, plan: PatchPlan, reporter: Reporter) -> PatchRecord:
    """Writes a copy of an adapter with its scaling; the weights stay as they are."""
    assert plan.source.adapter is not None
    files = list_files(plan.source.adapter.path, settings.allow_pickle)

    def copy(aside: Path) -> WrittenFiles:
        _copy(settings, files, aside, reporter)
        for name in (TOKENIZER_CONFIG, CARD):
            if (files.root / name).is_file():
                (aside / name).write_bytes((files.root / name).read_bytes())
        return files.describe(settings.link)

    return stage_adapter(settings, plan, copy)


def _dry_run(settings: PatchSettings, plan: PatchPlan, reporter: Reporter) -> PatchRecord:
    folder = Path(plan.source.location)
    config = plan.config(plan.source.writable_config, settings.drop_code)
    record = patch_record(settings, plan, config, {}, tokenizer_config(plan, folder))
    if is_rewritten(plan.source, settings.merge is not False):
        described = WrittenFiles(rewritten=True)
    elif folder.is_dir():
        files = list_files(folder, settings.allow_pickle)
        try:
            check_weights(files)
        except ConfigError as error:
            reporter.note(f"{error} The plan is valid, but writing would stop here.")
        described = files.describe(settings.link)
    else:
        sizes = hub_sizes(plan.source.location, plan.source.commit)
        described = WrittenFiles(num_files=len(sizes), num_bytes=sum(sizes.values()), linked=False, left_out=[])
    return replace(record, files=described)
