"""``ropectl finetune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ropectl.cli import options

_DATA, _WEIGHTS, _TRAINING, _ENGINE, _CHECKS, _OUTPUT = "Data", "Weights", "Training", "Engine", "Validation", "Output"

EXIT_OF_SIGNAL = 128


def finetune(
    model: options.Model = None,
    method: options.MethodSpec = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    replace: options.Replace = None,
    compose: options.Compose = None,
    freeze_at: options.FreezeAt = None,
    layers: options.Layers = None,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Training text: as --text elsewhere (default builtin:stdlib-train).",
            rich_help_panel=_DATA,
        ),
    ] = None,
    seq_len: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Tokens per sequence (default: the target length; with pose the trained one).",
            rich_help_panel=_DATA,
        ),
    ] = None,
    packing: Annotated[
        str | None,
        typer.Option(
            help="concat (default: long documents, the rest joined), isolated (documents do not see each other) or none.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option(
            help="contiguous (default), or pose: short sequences, positions skipped up to the target.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    pose_chunks: Annotated[
        int | None, typer.Option(metavar="N", help="Pieces of a pose sequence (default 2).", rich_help_panel=_DATA)
    ] = None,
    short_fraction: Annotated[
        float | None,
        typer.Option(metavar="P", help="Share of sequences of the trained length (default 0).", rich_help_panel=_DATA),
    ] = None,
    passkey_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Share of sequences that are passkey prompts (default 0).", rich_help_panel=_DATA
        ),
    ] = None,
    bos: options.Bos = None,
    strategy: Annotated[str | None, typer.Option(help="full (default) or lora.", rich_help_panel=_WEIGHTS)] = None,
    lora_rank: Annotated[int | None, typer.Option(metavar="N", help="Default 8.", rich_help_panel=_WEIGHTS)] = None,
    lora_alpha: Annotated[float | None, typer.Option(metavar="A", help="Default 16.", rich_help_panel=_WEIGHTS)] = None,
    lora_dropout: Annotated[
        float | None, typer.Option(metavar="P", help="Default 0.", rich_help_panel=_WEIGHTS)
    ] = None,
    lora_targets: Annotated[
        str | None, typer.Option(help="attention (default) or all linear layers.", rich_help_panel=_WEIGHTS)
    ] = None,
    train_norms: Annotated[
        bool | None, typer.Option("--train-norms", help="With lora: norms too (LongLoRA).", rich_help_panel=_WEIGHTS)
    ] = None,
    train_embeddings: Annotated[
        bool | None,
        typer.Option("--train-embeddings", help="With lora: embeddings too (LongLoRA).", rich_help_panel=_WEIGHTS),
    ] = None,
    merge: Annotated[
        bool | None,
        typer.Option(
            "--merge/--no-merge", help="Write the merged model (default), or the adapter.", rich_help_panel=_WEIGHTS
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Optimizer steps (default 400).", rich_help_panel=_TRAINING)
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="Sequences per step over all devices (default 8).", rich_help_panel=_TRAINING),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--learning-rate", "--lr", metavar="R", help="Peak; default 2e-5, lora 2e-4.", rich_help_panel=_TRAINING
        ),
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="constant (default), linear or cosine.", rich_help_panel=_TRAINING)
    ] = None,
    warmup_steps: Annotated[
        int | None, typer.Option(metavar="N", help="Default 20.", rich_help_panel=_TRAINING)
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(metavar="W", help="Default 0.", rich_help_panel=_TRAINING)
    ] = None,
    beta2: Annotated[float | None, typer.Option(metavar="B", help="Default 0.95.", rich_help_panel=_TRAINING)] = None,
    clip: Annotated[
        float | None, typer.Option(metavar="N", help="Gradient norm (default 1).", rich_help_panel=_TRAINING)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Data order, LoRA matrices, dropout (default 0).", rich_help_panel=_TRAINING)
    ] = None,
    micro_batch: Annotated[
        int | None,
        typer.Option(metavar="N", help="Sequences per forward pass on a device (default 1).", rich_help_panel=_ENGINE),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Arithmetic: auto, fp32, bf16 or fp16.", rich_help_panel=_ENGINE)
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Weights while training: auto, float32 or bfloat16.", rich_help_panel=_ENGINE),
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto or cpu.", rich_help_panel=_ENGINE)] = None,
    attention: options.Attention = None,
    activation_checkpointing: Annotated[
        str | None, typer.Option(help="off (default), on, or offload to host memory.", rich_help_panel=_ENGINE)
    ] = None,
    loss_chunk: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tokens whose logits exist at a time; 0 for all.", rich_help_panel=_ENGINE),
    ] = None,
    cp_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="Devices that share each sequence (default 1).", rich_help_panel=_ENGINE),
    ] = None,
    eval_every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps between validations; the best is written.", rich_help_panel=_CHECKS),
    ] = None,
    eval_text: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Held-out text.", rich_help_panel=_CHECKS)
    ] = None,
    eval_lengths: Annotated[
        list[str] | None,
        typer.Option("--eval-length", metavar="N", help="As --length elsewhere; repeatable.", rich_help_panel=_CHECKS),
    ] = None,
    eval_documents: Annotated[
        int | None, typer.Option(metavar="N", help="Most documents (default 8).", rich_help_panel=_CHECKS)
    ] = None,
    eval_trials: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Passkeys per length and depth (default 5); 0 for none.", rich_help_panel=_CHECKS
        ),
    ] = None,
    early_stop: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after N validations without a better one.", rich_help_panel=_CHECKS),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the result; the run is kept in OUT.run.", rich_help_panel=_OUTPUT),
    ] = None,
    save_dtype: Annotated[
        str | None, typer.Option(help="Type of the written weights (default: the source's).", rich_help_panel=_OUTPUT)
    ] = None,
    save_every: Annotated[
        int | None, typer.Option(metavar="N", help="Steps between saved states (default 50).", rich_help_panel=_OUTPUT)
    ] = None,
    keep: Annotated[
        int | None, typer.Option(metavar="N", help="Saved states that are kept (default 2).", rich_help_panel=_OUTPUT)
    ] = None,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Continue the run in OUT.run (default), or begin anew and remove its states.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    force: Annotated[
        bool | None,
        typer.Option("--force", help="Continue although settings have changed.", rich_help_panel=_OUTPUT),
    ] = None,
    overwrite: Annotated[
        bool | None, typer.Option("--overwrite", help="Begin anew, replace OUT.", rich_help_panel=_OUTPUT)
    ] = None,
    dry_run: Annotated[
        bool | None, typer.Option("--dry-run", help="Estimate memory and time; write nothing.", rich_help_panel=_OUTPUT)
    ] = None,
    tracker: Annotated[
        str | None, typer.Option(metavar="NAME", help="tensorboard, wandb, trackio, ...", rich_help_panel=_OUTPUT)
    ] = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    strict: options.Strict = None,
    trust_remote_code: options.TrustRemoteCode = None,
    drop_code: options.DropCode = None,
    allow_pickle: options.AllowPickle = None,
    config: options.ConfigFile = None,
    print_config: options.PrintConfig = False,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Train a model with a scaling in force, and write it as a checkpoint that stock runtimes load.

    The same command goes on after an interruption. On several devices: accelerate launch -m ropectl finetune ...

    Example: ropectl finetune ./my-model -m yarn --factor 4 --text 'books/*.txt' --steps 400 -o tuned
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.train.settings import FinetuneSettings

    settings = options.resolve_config(FinetuneSettings, config, given)

    from ropectl.cli import output

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    from ropectl.cli.output import is_main_process
    from ropectl.cli.training import TrainingReporter
    from ropectl.report.finetune import estimate_parts, finetune_parts
    from ropectl.report.patch import step_lines
    from ropectl.train.api import finetune as run

    output.quiet_libraries()
    with TrainingReporter() as reporter:
        finished = run(settings, reporter)
    record = finished.record
    if record is not None and is_main_process():
        if format is options.Format.json:
            output.print_json(record)
        elif settings.dry_run:
            output.print_parts(estimate_parts(record))
        else:
            output.print_parts(finetune_parts(record))
            output.print_lines(step_lines(record))
    if finished.signal:
        raise typer.Exit(EXIT_OF_SIGNAL + finished.signal)
