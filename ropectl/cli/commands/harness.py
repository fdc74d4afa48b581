"""``ropectl harness``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ropectl.cli import options
from ropectl.option import Panel

if TYPE_CHECKING:
    from ropectl.evaluate.harness import HarnessConfig


def harness(
    settings: HarnessConfig,
    run: Annotated[
        bool, typer.Option("--run", help="Make the calls now.", rich_help_panel=Panel.harness.value)
    ] = False,
    out: options.OutFile = None,
    overwrite: options.Overwrite = False,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Ordinary tasks on a model under a scaling method, by EleutherAI's lm-evaluation-harness: what scaling costs there.

    Prints a Python script with the exact calls on the patched model in memory; with --run it makes them
    (pip install 'ropectl\\[harness]').

    Example: ropectl harness ./my-model -m yarn --factor 4 --task hellaswag --task arc_easy > run.py

    Example: ropectl harness ./my-model -m yarn --factor 4 --task hellaswag --limit 100 --run -o result.json
    """
    from ropectl.cli import next_steps, output
    from ropectl.cli.progress import BarReporter
    from ropectl.errors import ConfigError
    from ropectl.evaluate.harness import harness_script, run_harness

    output.check_one_process("harness")
    folder = settings.include_path
    if folder is not None and not Path(folder).expanduser().is_dir():
        raise ConfigError(f"include-path = {folder!r} is not a folder.", "Name the folder of your task files.")
    output.check_new(out, overwrite, settings)
    output.quiet_libraries()
    if not run:
        with BarReporter() as reporter:
            script = harness_script(settings, reporter)
        if out is None:
            output.print_lines(script.splitlines())
            return
        from ropectl.runs import written_aside

        with written_aside(out) as file:
            file.write(f"{script}\n".encode())
        output.note(f"Script: {out}")
        next_steps.show(next_steps.after_script(out), format)
        return
    with BarReporter() as reporter:
        record = run_harness(settings, reporter)
    output.present({**record, "method": record["method"] or "as it is"}, format.value, out)
