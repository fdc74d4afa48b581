"""``ropectl finetune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ropectl.cli import completion, options
from ropectl.cli.completion import Offer

_DATA, _WEIGHTS, _TRAINING, _ENGINE, _CHECKS, _OUTPUT = "Data", "Weights", "Training", "Engine", "Validation", "Output"

EXIT_OF_SIGNAL = 128


def _option(panel: str, text: str, *names: str, metavar: str | None = None, offer: Offer | None = None) -> Any:
    """Declares an option: the panel it stands in, its help, and what completion offers."""
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, autocompletion=offer)


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
        _option(
            _DATA,
            "Training text: as --text elsewhere (default builtin:stdlib-train).",
            metavar="SOURCE",
            offer=completion.sources,
        ),
    ] = None,
    seq_len: Annotated[
        str | None,
        _option(_DATA, "Tokens per sequence (default: the target length; with pose the trained one).", metavar="N"),
    ] = None,
    packing: Annotated[
        str | None,
        _option(
            _DATA,
            "concat (default: long documents, the rest joined), isolated (documents do not see each other) or none.",
            metavar="HOW",
            offer=completion.words_of("packing"),
        ),
    ] = None,
    positions: Annotated[
        str | None,
        _option(
            _DATA,
            "contiguous (default), or pose: short sequences, positions skipped up to the target.",
            metavar="HOW",
            offer=completion.words_of("positions"),
        ),
    ] = None,
    pose_chunks: Annotated[str | None, _option(_DATA, "Pieces of a pose sequence (default 2).", metavar="N")] = None,
    short_fraction: Annotated[
        str | None, _option(_DATA, "Share of sequences of the trained length (default 0).", metavar="P")
    ] = None,
    passkey_fraction: Annotated[
        str | None, _option(_DATA, "Share of sequences that are passkey prompts (default 0).", metavar="P")
    ] = None,
    bos: Annotated[
        str | None,
        _option(
            _DATA,
            "First token of a document: auto (default: as the tokenizer does), always, available or never.",
            metavar="WHEN",
            offer=completion.names_in("ropectl.hf.run_names", "BOS_POLICIES"),
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        _option(
            _WEIGHTS,
            "full (default) or lora.",
            metavar="NAME",
            offer=completion.names_in("ropectl.train.strategies", "STRATEGIES"),
        ),
    ] = None,
    lora_rank: Annotated[str | None, _option(_WEIGHTS, "Rank of the matrices (default 8).", metavar="N")] = None,
    lora_alpha: Annotated[
        str | None, _option(_WEIGHTS, "Scale of the update, divided by the rank (default 16).", metavar="A")
    ] = None,
    lora_dropout: Annotated[
        str | None, _option(_WEIGHTS, "Dropout before the matrices (default 0).", metavar="P")
    ] = None,
    lora_targets: Annotated[
        str | None,
        _option(
            _WEIGHTS,
            "attention (default) or all linear layers.",
            metavar="WHICH",
            offer=completion.words_of("lora_targets"),
        ),
    ] = None,
    train_norms: Annotated[bool | None, _option(_WEIGHTS, "With lora: norms too (LongLoRA).", "--train-norms")] = None,
    train_embeddings: Annotated[
        bool | None, _option(_WEIGHTS, "With lora: embeddings too (LongLoRA).", "--train-embeddings")
    ] = None,
    merge: Annotated[
        bool | None, _option(_WEIGHTS, "Write the merged model (default), or the adapter.", "--merge/--no-merge")
    ] = None,
    steps: Annotated[str | None, _option(_TRAINING, "Optimizer steps (default 400).", metavar="N")] = None,
    batch_size: Annotated[
        str | None, _option(_TRAINING, "Sequences per step over all devices (default 8).", metavar="N")
    ] = None,
    learning_rate: Annotated[
        str | None, _option(_TRAINING, "Its peak (default 2e-5, lora 2e-4).", "--learning-rate", "--lr", metavar="R")
    ] = None,
    schedule: Annotated[
        str | None,
        _option(
            _TRAINING,
            "constant (default), linear or cosine.",
            metavar="NAME",
            offer=completion.names_in("ropectl.train.schedule", "SCHEDULES"),
        ),
    ] = None,
    warmup_steps: Annotated[
        str | None, _option(_TRAINING, "Steps over which the learning rate rises (default 20).", metavar="N")
    ] = None,
    weight_decay: Annotated[
        str | None, _option(_TRAINING, "Of AdamW, on matrices only (default 0).", metavar="W")
    ] = None,
    beta2: Annotated[str | None, _option(_TRAINING, "Of AdamW (default 0.95).", metavar="B")] = None,
    clip: Annotated[str | None, _option(_TRAINING, "Largest norm of the gradient (default 1).", metavar="N")] = None,
    seed: Annotated[
        str | None, _option(_TRAINING, "Data order, LoRA matrices, dropout (default 0).", metavar="N")
    ] = None,
    micro_batch: Annotated[
        str | None, _option(_ENGINE, "Sequences per forward pass on a device (default 1).", metavar="N")
    ] = None,
    precision: Annotated[
        str | None,
        _option(
            _ENGINE,
            "Arithmetic: auto (default), fp32, bf16 or fp16.",
            metavar="TYPE",
            offer=completion.words_of("precision"),
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        _option(
            _ENGINE,
            "Weights while training: auto (default), float32 or bfloat16.",
            metavar="TYPE",
            offer=completion.names_in("ropectl.hf.run_names", "DTYPES"),
        ),
    ] = None,
    device: Annotated[
        str | None,
        _option(
            _ENGINE,
            "auto (default) or cpu; which accelerator, the launcher decides.",
            metavar="NAME",
            offer=completion.words_of("device"),
        ),
    ] = None,
    attention: options.Attention = None,
    activation_checkpointing: Annotated[
        str | None,
        _option(
            _ENGINE,
            "off (default), on, or offload to host memory.",
            metavar="HOW",
            offer=completion.words_of("activation_checkpointing"),
        ),
    ] = None,
    loss_chunk: Annotated[
        str | None, _option(_ENGINE, "Tokens whose logits exist at a time; 0 for all.", metavar="N")
    ] = None,
    cp_size: Annotated[
        str | None, _option(_ENGINE, "Devices that share each sequence (default 1).", metavar="N")
    ] = None,
    eval_every: Annotated[
        str | None, _option(_CHECKS, "Steps between validations; the best is written (default: none).", metavar="N")
    ] = None,
    eval_text: Annotated[
        str | None,
        _option(
            _CHECKS,
            "Held-out text (default builtin:stdlib for the built-in training text).",
            metavar="SOURCE",
            offer=completion.sources,
        ),
    ] = None,
    eval_lengths: Annotated[
        list[str] | None,
        _option(
            _CHECKS,
            "As --length elsewhere, repeatable (default: from the trained length to the target).",
            "--eval-length",
            metavar="N",
        ),
    ] = None,
    eval_documents: Annotated[str | None, _option(_CHECKS, "Most documents (default 8).", metavar="N")] = None,
    eval_trials: Annotated[
        str | None, _option(_CHECKS, "Passkeys per length and depth (default 5); 0 for none.", metavar="N")
    ] = None,
    early_stop: Annotated[
        str | None, _option(_CHECKS, "Stop after N validations without a better one (default: never).", metavar="N")
    ] = None,
    out: Annotated[
        Path | None,
        _option(_OUTPUT, "Folder of the result; the run is kept in OUT.run.", "--out", "-o", metavar="FOLDER"),
    ] = None,
    save_dtype: Annotated[
        str | None,
        _option(
            _OUTPUT,
            "Type of the written weights (default: the source's).",
            metavar="TYPE",
            offer=completion.names_in("ropectl.hf.run_names", "DTYPES"),
        ),
    ] = None,
    save_every: Annotated[str | None, _option(_OUTPUT, "Steps between saved states (default 50).", metavar="N")] = None,
    keep: Annotated[str | None, _option(_OUTPUT, "Saved states that are kept (default 2).", metavar="N")] = None,
    resume: Annotated[
        bool | None,
        _option(
            _OUTPUT,
            "Continue the run in OUT.run (default), or begin anew and remove its states.",
            "--resume/--no-resume",
        ),
    ] = None,
    force: Annotated[bool | None, _option(_OUTPUT, "Continue although settings have changed.", "--force")] = None,
    overwrite: Annotated[bool | None, _option(_OUTPUT, "Begin anew, replace OUT.", "--overwrite")] = None,
    dry_run: Annotated[bool | None, _option(_OUTPUT, "Estimate memory and time; write nothing.", "--dry-run")] = None,
    tracker: Annotated[
        str | None, _option(_OUTPUT, "tensorboard, wandb, trackio, ... (default: none).", metavar="NAME")
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

    Example: ropectl finetune ./my-model -m yarn --factor 4 --text 'books/*.txt' --positions pose --dry-run

    Example: ropectl finetune -m yarn --factor 4 --config configs/finetune/builtin-lora.yaml -o tuned-lora
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.train.settings import FinetuneSettings

    settings = options.resolve_config(FinetuneSettings, config, given, finetune)

    from ropectl.cli import output

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    from ropectl.cli.output import is_main_process
    from ropectl.cli.progress import BarReporter
    from ropectl.report.finetune import estimate_parts, finetune_parts
    from ropectl.report.patch import step_lines
    from ropectl.train.api import finetune as run

    output.quiet_libraries()
    with BarReporter() as reporter:
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
