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
    format: options.TableFormat = options.Format.human.value,
) -> None:
    """Say which reading of a checkpoint a running server computes, or a runtime that is started, by log-probabilities.

    Transformers computes the same tokens as the checkpoint means them and under every known fault: unscaled, another
    attention factor, base, trained length, factor or list. Exit code 1 where another reading fits than the one that was
    meant, or none, or where the server takes fewer tokens than were asked for.

    Example: ropectl verify-runtime my-model-yarn4 --endpoint http://localhost:8000

    Example: ropectl verify-runtime model.Q8_0.gguf --endpoint http://localhost:8080 --reference my-model-yarn4

    Example: ropectl verify-runtime my-model-yarn4 --runtime vllm --python ~/vllm/bin/python

    Example: ropectl verify-runtime model.gguf --runtime llama.cpp --python ~/llamacpp/bin/python
    """
    from ropectl.checkpoint.runtime_check import verify_runtime as run
    from ropectl.cli import output
    from ropectl.cli.progress import BarReporter

    output.check_new(out, overwrite, settings)
    output.quiet_libraries()
    with BarReporter() as reporter:
        record = run(settings, reporter)
    output.present(record, format, out)
    if not record["as_meant"]:
        raise typer.Exit(1)
