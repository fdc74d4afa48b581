"""``ropectl compare-methods``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ropectl.cli import completion, options

_GATES = "Gates"


def compare_methods(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="Folder, hub id, .gguf file, LoRA adapter folder or builtin:tiny (default). Further ones are measured "
            "as they are beside it.",
            show_default=False,
            autocompletion=completion.models,
        ),
    ] = None,
    methods: options.MethodSpecs = None,
    factor: options.Factors = None,
    target_length: options.TargetLength = None,
    lengths: options.Lengths = None,
    text: options.Text = None,
    documents: options.Documents = None,
    passkey: Annotated[
        bool | None,
        typer.Option(
            "--passkey/--no-passkey",
            help="Measure passkey retrieval too (default).",
            rich_help_panel=options.MEASUREMENT,
        ),
    ] = None,
    depths: options.Depths = None,
    trials: options.Trials = None,
    distractors: options.Distractors = None,
    seed: options.Seed = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="NATS",
            help="Loss above the unscaled model's that still counts as modelled (default 0.02).",
            rich_help_panel=options.MEASUREMENT,
        ),
    ] = None,
    fail_above: Annotated[
        str | None,
        typer.Option(
            metavar="PPL",
            help="Exit 3 if the pick's perplexity is above this at any length up to the target.",
            rich_help_panel=_GATES,
        ),
    ] = None,
    min_accuracy: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="Exit 3 if the pick retrieves a smaller share of passkeys at any length up to the target. It then counts as used from "
            "there on (else from 0.9).",
            rich_help_panel=_GATES,
        ),
    ] = None,
    max_short_regression: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Exit 3 if the pick's perplexity up to L rises by more than this share.",
            rich_help_panel=_GATES,
        ),
    ] = None,
    finetune: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Train every method equally, by the settings of finetune in this YAML file, and measure it again.",
            rich_help_panel="Training",
        ),
    ] = None,
    batch_size: options.BatchSize = None,
    bos: options.Bos = None,
    prefill_chunk: options.PrefillChunk = None,
    layers: options.Layers = None,
    replace: options.Replace = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    dtype: options.Dtype = None,
    device: options.Device = None,
    attention: options.Attention = None,
    trust_remote_code: options.TrustRemoteCode = None,
    allow_pickle: options.AllowPickle = None,
    out: options.Out = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Measure again what ended in an error.", rich_help_panel=options.RUN)
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what it takes: cells, tokens, time, memory.", rich_help_panel=options.RUN
        ),
    ] = False,
    config: options.ConfigFile = None,
    print_config: options.PrintConfig = False,
    format: options.TableFormat = "human",
) -> None:
    """Compare scaling methods side by side: perplexity and passkey retrieval by length, and how far each reaches.

    Without a model it runs on the built-in one, without methods with all of them at a factor of 4. The same command
    continues an interrupted run. With --finetune, each method is also trained, from the same weights on the same tokens in
    the same number of steps, and measured again.

    Example: ropectl compare-methods --factor 4 --dry-run

    Example: ropectl compare-methods ./my-model -m pi -m yarn --factor 4 --text 'books/*.txt'

    Example: ropectl compare-methods ./base ./base-yarn ./base-tuned --factor 2 --factor 4
    """
    given = locals()  # the options are the settings, under the same names
    if models:
        given |= {"model": models[0], "others": models[1:] or None}
    from ropectl.evaluate.config import CompareConfig

    settings = options.resolve_config(CompareConfig, config, given, compare_methods)

    from ropectl.cli import output

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    output.quiet_libraries()
    from ropectl.cli.gates import gate_failed
    from ropectl.cli.progress import BarReporter
    from ropectl.compare.gates import unmet_gates
    from ropectl.compare.run import compare_methods as run
    from ropectl.report.formats import check_format
    from ropectl.report.views import COMPARISON, COMPARISON_ESTIMATE

    if dry_run:
        from ropectl.compare.dry_run import estimate_comparison

        check_format(format, COMPARISON_ESTIMATE, "--dry-run")
        with BarReporter() as reporter:
            estimate = estimate_comparison(settings, out, reporter, retry_failed)
        output.show(estimate, COMPARISON_ESTIMATE, format)
        return
    with BarReporter() as reporter:
        comparison = run(settings, out, reporter, retry_failed)
    if not output.is_main_process():
        return
    output.show(comparison.record, COMPARISON, format)
    output.note(f"Records: {comparison.folder}")
    output.note(f"A page about them: ropectl report {shlex.quote(str(comparison.folder))}")
    if comparison.num_failed:
        output.warn(
            f"{comparison.num_failed} cells failed. To measure them again: the same command with --retry-failed"
        )
    if comparison.num_untrained:
        output.warn(f"{comparison.num_untrained} trainings failed; the same command tries them again.")
    if comparison.num_failed or comparison.num_untrained:
        raise typer.Exit(1)
    if messages := unmet_gates(comparison.record):
        gate_failed(messages)
