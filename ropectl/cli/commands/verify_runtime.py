"""``ropectl verify-runtime``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ropectl.cli import completion, options

_RUNTIME = "Runtime"


def verify_runtime(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Checkpoint folder, or .gguf file for llama.cpp.")],
    runtime: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="vllm or llama.cpp.",
            rich_help_panel=_RUNTIME,
            autocompletion=completion.asked_runtimes,
        ),
    ],
    python: Annotated[
        Path,
        typer.Option(
            metavar="PATH", help="Python of the environment that holds the runtime.", rich_help_panel=_RUNTIME
        ),
    ],
    text: options.Text = None,
    length: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Tokens to run (default: what the checkpoint is meant for, at most 4k).",
            rich_help_panel=options.MEASUREMENT,
        ),
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Tokens to compare, evenly spread; all by default.",
            rich_help_panel=options.MEASUREMENT,
        ),
    ] = None,
    original_length: options.OriginalLength = None,
    trust_remote_code: options.TrustRemoteCode = None,
    allow_pickle: options.AllowPickle = None,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Compare another runtime with transformers on a checkpoint: log-probabilities of the same text, in float32.

    Exit code 1 where the two differ by more than 0.001 nats a token on average.

    Example: ropectl verify-runtime my-model-yarn4 --runtime vllm --python ~/vllm/bin/python

    Example: ropectl verify-runtime model.gguf --runtime llama.cpp --python ~/llamacpp/bin/python
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.checkpoint.runtime_check import RuntimeCheckSettings
    from ropectl.checkpoint.runtime_check import verify_runtime as run
    from ropectl.cli import output
    from ropectl.cli.progress import BarReporter
    from ropectl.report.runtime_check import runtime_check_parts
    from ropectl.runs import write_json

    settings = options.resolve_config(RuntimeCheckSettings, None, given)
    output.check_new(out, overwrite)
    output.quiet_libraries()
    with BarReporter() as reporter:
        record = run(settings, reporter)
    if format is options.Format.json:
        output.print_json(record)
    else:
        output.print_parts(runtime_check_parts(record))
    if out is not None:
        write_json(out, record)
        output.note(f"Record: {out}")
    if not record["agrees"]:
        raise typer.Exit(1)
