"""``ropectl verify-runtime``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.checkpoint.runtime_check import RuntimeCheckSettings


def verify_runtime(
    settings: RuntimeCheckSettings,
    out: options.OutFile = None,
    overwrite: options.Overwrite = False,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Compare another runtime with transformers on a checkpoint: log-probabilities of the same text, in float32.

    Exit code 1 where the two differ by more than 0.001 nats a token on average.

    Example: ropectl verify-runtime my-model-yarn4 --runtime vllm --python ~/vllm/bin/python

    Example: ropectl verify-runtime model.gguf --runtime llama.cpp --python ~/llamacpp/bin/python
    """
    from ropectl.checkpoint.runtime_check import verify_runtime as run
    from ropectl.cli import output
    from ropectl.cli.progress import BarReporter
    from ropectl.report.views.verify_runtime import runtime_check_parts

    output.check_new(out, overwrite, settings)
    output.quiet_libraries()
    with BarReporter() as reporter:
        record = run(settings, reporter)
    output.print_report(record, format, runtime_check_parts)
    output.write_record(record, out)
    if not record["agrees"]:
        raise typer.Exit(1)
