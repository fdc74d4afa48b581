"""``ropectl patch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ropectl.cli import completion, options

_OUTPUT = "Output"


def patch(
    model: options.Model = None,
    method: options.MethodSpec = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder to write; .gguf with --gguf-patch.", rich_help_panel=_OUTPUT),
    ] = None,
    replace: options.Replace = None,
    compose: options.Compose = None,
    freeze_at: options.FreezeAt = None,
    layers: options.Layers = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    strict: options.Strict = None,
    trust_remote_code: options.TrustRemoteCode = None,
    drop_code: options.DropCode = None,
    allow_pickle: options.AllowPickle = None,
    link: Annotated[
        bool | None,
        typer.Option("--link", help="Hard link weight files instead of copying them.", rich_help_panel=_OUTPUT),
    ] = None,
    merge: Annotated[
        bool | None,
        typer.Option("--merge/--no-merge", help="Merge a LoRA adapter (default), or keep it.", rich_help_panel=_OUTPUT),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Type of weights that are rewritten: GGUF, merged (default auto: the source's).",
            rich_help_panel=_OUTPUT,
            autocompletion=completion.names_in("ropectl.hf.run_names", "DTYPES"),
        ),
    ] = None,
    verify_logits: Annotated[
        bool | None,
        typer.Option("--verify-logits", help="Compare logits with a fresh process.", rich_help_panel=_OUTPUT),
    ] = None,
    gguf_patch: Annotated[
        Path | None,
        typer.Option("--gguf-patch", metavar="FILE", help="Patch a copy of a GGUF file.", rich_help_panel=_OUTPUT),
    ] = None,
    overwrite: Annotated[
        bool | None, typer.Option("--overwrite", help="Replace what stands at --out.", rich_help_panel=_OUTPUT)
    ] = None,
    dry_run: Annotated[
        bool | None, typer.Option("--dry-run", help="Show the plan, write nothing.", rich_help_panel=_OUTPUT)
    ] = None,
    config: options.ConfigFile = None,
    print_config: options.PrintConfig = False,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Write a checkpoint that stock runtimes load with the scaling in force. Weights are copied, not loaded.

    Without a method the scaling that is there is kept, and written so that old and new readers find it.

    Example: ropectl patch ./my-model -m yarn --factor 4 -o my-model-yarn4

    Example: ropectl patch ./my-model -m dynamic-yarn --freeze-at 16k -o my-model-frozen --dry-run

    Example: ropectl patch --gguf-patch model.gguf -m yarn --factor 4 -o model-yarn4.gguf
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.checkpoint.settings import PatchSettings

    settings = options.resolve_config(PatchSettings, config, given, patch)

    from ropectl.cli import output
    from ropectl.cli.progress import BarReporter

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    from ropectl.checkpoint.api import patch_checkpoint
    from ropectl.report.patch import patch_parts, step_lines

    output.quiet_libraries()
    with BarReporter() as reporter:
        record = patch_checkpoint(settings, reporter)
    if format is options.Format.json:
        output.print_json(record)
    else:
        output.print_parts(patch_parts(record))
        output.print_lines(step_lines(record))
